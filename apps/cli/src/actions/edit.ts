import { isUtf8 } from "node:buffer";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describeProblem, documentOf, idAt } from "@plinth/documents";
import {
	locate,
	parseDocuments,
	readDocument,
	type SourceDocument,
	toYaml,
	type WantedResource,
} from "@plinth/documents/yaml";
import { displayName, finalizersKey, sameName } from "@plinth/resource";
import { isMap, isScalar, type Pair } from "yaml";
import { callFailure } from "../api/call-failure.ts";
import { readResource } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { applyResource } from "../apply/apply-resource.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { parseTarget } from "./targets.ts";

const header = `# Edit the resource below. Lines that begin with # are ignored. What you delete is removed. An
# unchanged or empty file changes nothing.
`;

/** Opens a resource as YAML in an editor, and applies the result. */
export async function edit(session: ServerSession, words: readonly string[]): Promise<ExitCode> {
	const { io } = session;
	const types = await session.types();
	const { type, name } = parseTarget(words, types);
	if (editorOf(io) === undefined && !io.isInteractive) {
		throw usageFailure(
			"can't open an editor: this is not a terminal. Set VISUAL or EDITOR to a command that edits the file, or use plinth apply",
		);
	}
	const resource = await readResource(session, type, name);
	const { version, status, ...document } = documentOf(resource, types);
	const file = join(mkdtempSync(join(tmpdir(), "plinth-edit-")), `${name}.yaml`);
	const original = toYaml(document satisfies JsonObject);
	try {
		const done = await editUntilApplied(
			session,
			{ file, original, keptBy: (text) => keptByApply(document, text) },
			(text) => apply(session, file, text, { document, id: idAt(type, name, session.place) }),
		);
		rmSync(dirname(file), { recursive: true });
		if (done === undefined) {
			io.err("nothing was changed\n");
		} else {
			io.out(`${done}\n`);
		}
		return exitCodes.ok;
	} catch (error) {
		if (io.signal.aborted) {
			// The command ends without the message of the failure.
			io.err(`interrupted: your edit is in ${file}\n`);
		}
		throw error;
	}
}

/** A file that is edited. */
interface EditedFile {
	readonly file: string;
	readonly original: string;
	/** See `keptByApply`. */
	readonly keptBy: (text: string) => readonly string[];
}

/**
 * Opens the editor, and again with the problem in the file if what it leaves is refused, until it is applied or the user
 * gives up.
 *
 * @returns what was done; `undefined` if nothing was changed.
 * @throws Failure that names the file, which is kept.
 */
async function editUntilApplied(
	{ io, settings }: ServerSession,
	{ file, original, keptBy }: EditedFile,
	applyText: (text: string) => Promise<string>,
): Promise<string | undefined> {
	let comment = header;
	let content = original;
	let refusal: Failure | undefined;
	for (;;) {
		const text = comment + content;
		writeFileSync(file, text, { mode: 0o600 });
		const edited = await editedText(io, file);
		const next = withoutComment(edited, comment);
		if (isUnchanged(next, original)) {
			return undefined;
		}
		if (refusal !== undefined && next === content) {
			throw kept(refusal, file, keptBy(next));
		}
		try {
			return await applyText(edited);
		} catch (error) {
			refusal = callFailure(error, settings.endpoint.server);
			if (!io.isInteractive || io.signal.aborted || !isRefusal(refusal)) {
				throw kept(refusal, file, keptBy(next));
			}
			comment = commentOn(refusal);
			content = next;
		}
	}
}

/** The editor that the user has chosen. */
function editorOf({ env }: ServerSession["io"]): string | undefined {
	return env.VISUAL || env.EDITOR || undefined;
}

/** What the editor leaves in the file. @throws Failure if it fails. */
async function editedText(io: ServerSession["io"], file: string): Promise<string> {
	const command = editorOf(io) ?? "vi";
	const code = await io.runEditor(command, file).catch((error: unknown) => {
		throw new Failure(
			exitCodes.failed,
			`the editor can't be started: ${reasonOf(error)}; the edited file is ${file}`,
		);
	});
	if (code !== 0) {
		throw new Failure(
			exitCodes.failed,
			`the editor exited with code ${code}, so nothing was changed; the edited file is ${file}${code === noSuchCommand ? `. Is ${command} installed? Set VISUAL or EDITOR to another editor` : ""}`,
		);
	}
	let bytes: Buffer;
	try {
		bytes = readFileSync(file);
	} catch (error) {
		throw new Failure(exitCodes.failed, `the editor left no file: ${reasonOf(error)}`);
	}
	if (!isUtf8(bytes)) {
		throw new Failure(
			exitCodes.usage,
			`the edited file is not valid UTF-8, so nothing was changed: ${file}`,
		);
	}
	return bytes.toString();
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

/** The exit code of a shell that does not find the command. */
const noSuchCommand = 127;

/** Whether the server or this command refuses the document itself, so that another one may be accepted. */
function isRefusal({ exitCode, cause }: Failure): boolean {
	return (
		exitCode === exitCodes.usage ||
		exitCode === exitCodes.failed ||
		(cause instanceof ConnectError &&
			[Code.FailedPrecondition, Code.PermissionDenied].includes(cause.code))
	);
}

/** @param left - what `plinth apply` would not remove, though the edit does. */
function kept({ exitCode, message }: Failure, file: string, left: readonly string[]): Failure {
	const note = left.length === 0 ? "" : `, which keeps what the file lacks: ${left.join(", ")}`;
	return new Failure(
		exitCode,
		`${message}\nyour edit is in ${file}: correct it and run plinth apply -f${note}`,
	);
}

/** The resource before the edit. */
interface Edited {
	readonly document: JsonObject;
	readonly id: ReturnType<typeof idAt>;
}

async function apply(
	session: ServerSession,
	file: string,
	text: string,
	{ document, id }: Edited,
): Promise<string> {
	const { io, connection, place } = session;
	const sources = parseDocuments(file, text);
	const [source] = sources;
	if (source === undefined || sources.length > 1) {
		throw usageFailure("the file must contain one document");
	}
	dropEmptied(source);
	const read = readDocument(source, { types: await session.types(), place });
	if (read === undefined) {
		throw usageFailure(
			source.problems.map((problem) => describeProblem(source.origin, problem)).join("\n"),
		);
	}
	const removed = removedFrom(document, source);
	const wanted = { ...read, removed };
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

/** Sections that may be left without content. */
const sections = ["owner", "owner_references", "metadata", "data"];

/** Drops sections and metadata of which only the key is left: the user has deleted the rest. */
function dropEmptied({ root }: SourceDocument): void {
	const isLeft = ({ value }: Pair) => !(isScalar(value) && value.value === null);
	if (!isMap(root)) {
		return;
	}
	const metadata = root.get("metadata");
	if (isMap(metadata)) {
		metadata.items = metadata.items.filter(isLeft);
	}
	root.items = root.items.filter((pair) => !sections.includes(String(pair.key)) || isLeft(pair));
}

/** What the original has and the edited document lacks, as in `WantedResource.removed`. */
function removedFrom(original: JsonObject, source: SourceDocument): ReadonlySet<string> {
	const edited = fieldsOf(source.value());
	const { metadata } = original;
	const kept = fieldsOf(edited.metadata);
	return new Set([
		...sections.filter((field) => Object.hasOwn(original, field) && !Object.hasOwn(edited, field)),
		...Object.keys(fieldsOf(metadata)).flatMap((key) =>
			Object.hasOwn(kept, key) ? [] : [`metadata.${key}`],
		),
	]);
}

/** What the text lacks of the original, and `plinth apply` would keep as it is stored. */
function keptByApply(original: JsonObject, text: string): readonly string[] {
	const [source] = parseDocuments("", text);
	if (source === undefined || source.problems.length > 0) {
		return [];
	}
	dropEmptied(source);
	const removed = removedFrom(original, source);
	const keeps = removed.has("metadata") ? sections : [...sections, `metadata.${finalizersKey}`];
	return keeps.filter((field) => removed.has(field));
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null ? { ...value } : {};
}

/** The failure, with the position of the field that the server names. */
function located(error: unknown, wanted: WantedResource, session: ServerSession): Failure {
	const failure = callFailure(error, session.settings.endpoint.server, "resource");
	return failure.cause instanceof ConnectError && failure.message.startsWith("resource.")
		? new Failure(failure.exitCode, locate(wanted.source, failure.message), {
				cause: failure.cause,
			})
		: failure;
}

/** Whether the document is empty, or the original: comments of the user change nothing. */
function isUnchanged(content: string, original: string): boolean {
	const meant = content.replaceAll(/^#.*\n?/gm, "");
	return meant.trim() === "" || meant === original;
}

/** The file without the lines of the comment at its top that are still there. */
function withoutComment(text: string, comment: string): string {
	const own = new Set(comment.split("\n"));
	const lines = text.split("\n");
	const first = lines.findIndex((line) => !own.has(line));
	return first === -1 ? "" : lines.slice(first).join("\n");
}

function commentOn({ message }: Failure): string {
	const problem = message.replaceAll(/^/gm, "# ");
	return `${header}#\n${problem}\n`;
}
