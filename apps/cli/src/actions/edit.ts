import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { displayName, sameName } from "@plinth/resource";
import { callFailure } from "../api/call-failure.ts";
import { idAt } from "../api/known-types.ts";
import { readResource } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { applyResource } from "../apply/apply-resource.ts";
import { describeProblem } from "../document/position.ts";
import { readDocument } from "../document/read-document.ts";
import { documentOf } from "../document/show-document.ts";
import { parseDocuments } from "../document/source-document.ts";
import { toYaml } from "../document/to-yaml.ts";
import { locate, type WantedResource } from "../document/wanted-resource.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { parseTarget } from "./targets.ts";

const header = `# Edit the resource below. Lines that begin with # are ignored. An unchanged or empty file
# changes nothing.
`;

/** Opens a resource as YAML in an editor, and applies the result. */
export async function edit(session: ServerSession, words: readonly string[]): Promise<ExitCode> {
	const { io } = session;
	const types = await session.types();
	const { type, name } = parseTarget(words, types);
	const resource = await readResource(session, type, name);
	const { version, status, ...document } = documentOf(resource, types);
	const file = join(mkdtempSync(join(tmpdir(), "plinth-edit-")), `${name}.yaml`);
	const original = toYaml(document satisfies JsonObject);
	let text = header + original;
	for (;;) {
		writeFileSync(file, text, { mode: 0o600 });
		const code = await io.runEditor(io.env.VISUAL || io.env.EDITOR || "vi", file);
		if (code !== 0) {
			throw new Failure(
				exitCodes.failed,
				`the editor exited with code ${code}, and nothing was changed; its file is ${file}`,
			);
		}
		const edited = readFileSync(file, "utf8");
		const content = withoutComments(edited);
		if (content.trim() === "" || content === withoutComments(original)) {
			rmSync(dirname(file), { recursive: true });
			io.err("nothing was changed\n");
			return exitCodes.ok;
		}
		try {
			const done = await apply(session, file, edited, idAt(type, name, session.place));
			rmSync(dirname(file), { recursive: true });
			io.out(`${done}\n`);
			return exitCodes.ok;
		} catch (error) {
			const failure = callFailure(error, session.settings.endpoint.server);
			const mayRepeat =
				io.isInteractive &&
				edited !== text &&
				(failure.exitCode === exitCodes.usage || failure.exitCode === exitCodes.failed);
			if (!mayRepeat) {
				throw new Failure(
					failure.exitCode,
					`${failure.message}\nyour edit is in ${file}: correct it and run plinth apply -f`,
				);
			}
			text = withProblem(failure.message, content);
		}
	}
}

async function apply(
	session: ServerSession,
	file: string,
	text: string,
	id: ReturnType<typeof idAt>,
): Promise<string> {
	const { io, connection, place } = session;
	const sources = parseDocuments(file, text);
	const [source] = sources;
	if (source === undefined || sources.length > 1) {
		throw usageFailure("the file must contain one document");
	}
	const wanted = readDocument(source, { types: await session.types(), place });
	if (wanted === undefined) {
		throw usageFailure(
			source.problems.map((problem) => describeProblem(source.origin, problem)).join("\n"),
		);
	}
	if (!sameName(wanted.id, id)) {
		throw usageFailure(
			`an edit can't rename a resource: the document is ${displayName(wanted.id)}, not ${displayName(id)}`,
		);
	}
	try {
		const { kind, after } = await applyResource(wanted, {
			resources: connection.resources,
			clock: io.clock,
			signal: io.signal,
			dryRun: false,
		});
		return `${resourceName(after)} ${kind}`;
	} catch (error) {
		throw located(error, wanted, session);
	}
}

/** The failure, with the position of the field that the server names. */
function located(error: unknown, wanted: WantedResource, session: ServerSession): Failure {
	const failure = callFailure(error, session.settings.endpoint.server);
	return failure.cause instanceof ConnectError && failure.message.startsWith("resource.")
		? new Failure(failure.exitCode, locate(wanted.source, failure.message))
		: failure;
}

function withoutComments(text: string): string {
	return text.replaceAll(/^#.*\n?/gm, "");
}

function withProblem(message: string, content: string): string {
	const problem = message.replaceAll(/^/gm, "# ");
	return `${header}#\n${problem}\n${content}`;
}
