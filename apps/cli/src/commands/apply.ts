import { ConnectError } from "@connectrpc/connect";
import { displayName } from "@plinth/resource";
import { callFailure } from "../api/call-failure.ts";
import { applyResource } from "../apply/apply-resource.ts";
import { readFiles } from "../apply/read-files.ts";
import { describeProblem } from "../document/position.ts";
import { locate, type WantedResource } from "../document/wanted-resource.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/table.ts";
import type { Session } from "../session.ts";
import { type AddCommand, dryRunOption } from "./runner.ts";

interface ApplyFlags {
	readonly filename: readonly string[];
	readonly diff?: boolean;
	readonly dryRun?: "server";
}

/** `plinth apply`: creates or updates resources from files. */
export const addApply: AddCommand = (program, run) => {
	program
		.command("apply")
		.description("create or update resources from YAML or JSON files")
		.requiredOption("-f, --filename <file...>", "file, folder of files, or - for standard input")
		.option("--diff", "print the changes")
		.addOption(dryRunOption())
		.action((flags: ApplyFlags) => run((session) => apply(session, flags)));
};

async function apply(session: Session, flags: ApplyFlags): Promise<ExitCode> {
	const { io, place } = session;
	const types = await session.types();
	const all = await readFiles(flags.filename, io, { types, place });
	let exitCode: ExitCode = exitCodes.ok;
	for (const wanted of all) {
		try {
			await applyOne(session, wanted, flags);
		} catch (error) {
			if (io.signal.aborted) {
				throw error;
			}
			const failure = explain(error, wanted, session);
			io.err(`${printable(failure.message)}\n`);
			exitCode ||= failure.exitCode;
			if (failure.exitCode === exitCodes.unreachable) {
				return exitCode;
			}
		}
	}
	return exitCode;
}

async function applyOne(
	session: Session,
	wanted: WantedResource,
	{ diff, dryRun }: ApplyFlags,
): Promise<void> {
	const { io, connection } = session;
	const { kind, before, after } = await applyResource(wanted, {
		resources: connection.resources,
		clock: io.clock,
		signal: io.signal,
		dryRun: dryRun !== undefined,
	});
	if (diff && kind !== "unchanged") {
		// Loaded only here: the differ would be a tenth of the start of every command.
		const { showDiff } = await import("../output/show-diff.ts");
		io.out(showDiff(before, after, await session.types(), io.color));
	}
	io.out(`${resourceName(after)} ${kind}${dryRun === undefined ? "" : " (server dry run)"}\n`);
}

/** The failure, with the position of the document in its file, or of the field that the server names. */
function explain(error: unknown, wanted: WantedResource, session: Session): Failure {
	const { exitCode, message, cause } = callFailure(error, session.settings.endpoint.server);
	if (cause instanceof ConnectError && message.startsWith("resource.")) {
		return new Failure(exitCode, locate(wanted.source, message));
	}
	const { origin } = wanted.source;
	const position = wanted.source.positionOf("");
	return new Failure(
		exitCode,
		describeProblem(origin, { position, path: displayName(wanted.id), message }),
	);
}
