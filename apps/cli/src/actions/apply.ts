import { ConnectError } from "@connectrpc/connect";
import { displayName } from "@plinth/resource";
import { callFailure } from "../api/call-failure.ts";
import type { KnownTypes } from "../api/known-types.ts";
import type { ServerSession } from "../api/server-session.ts";
import { applyAll } from "../apply/apply-all.ts";
import type { Applied } from "../apply/apply-resource.ts";
import { readFiles } from "../apply/read-files.ts";
import { describeProblem } from "../document/position.ts";
import { locate, type WantedResource } from "../document/wanted-resource.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/printable.ts";
import { ProgressLine } from "../output/progress-line.ts";

/** The flags of `plinth apply`. */
export interface ApplyFlags {
	readonly filename: readonly string[];
	readonly diff?: boolean;
	readonly dryRun?: "server";
}

/** Creates or updates the resources of all documents. */
export async function apply(session: ServerSession, flags: ApplyFlags): Promise<ExitCode> {
	const show = await outcomeOf(await session.types(), flags, session.io.color);
	return applyDocuments(session, flags, show);
}

/** Prints how the documents differ from what is stored, as `apply` would change it. Nothing is stored. */
export async function diff(
	session: ServerSession,
	{ filename }: Pick<ApplyFlags, "filename">,
): Promise<ExitCode> {
	const types = await session.types();
	const { showDiff } = await import("../output/show-diff.ts");
	let differs = false;
	const show = ({ kind, before, after }: Applied) => {
		if (kind === "unchanged") {
			return "";
		}
		differs = true;
		return `${showDiff(before, after, types, session.io.color)}${resourceName(after)} would be ${kind}\n`;
	};
	const exitCode = await applyDocuments(session, { filename, dryRun: "server" }, show);
	return exitCode === exitCodes.ok && differs ? exitCodes.differs : exitCode;
}

/** @param show - what is printed for a document that was applied. */
async function applyDocuments(
	session: ServerSession,
	flags: ApplyFlags,
	show: (applied: Applied) => string,
): Promise<ExitCode> {
	const { io, place, connection } = session;
	const { server } = session.settings.endpoint;
	const types = await session.types();
	const all = await readFiles(flags.filename, io, { types, place });
	const progress = new ProgressLine(io);
	let exitCode: ExitCode = exitCodes.ok;
	const { applied, uncertain } = await applyAll(all, {
		resources: connection.resources,
		clock: io.clock,
		signal: io.signal,
		dryRun: flags.dryRun !== undefined,
		types,
		isFatal: (error) => callFailure(error, server).exitCode === exitCodes.unreachable,
		onProgress: (done) => progress.show(`${done} of ${all.length} documents`),
		onOutcome: (wanted, outcome) => {
			progress.clear();
			if (outcome.kind === "applied") {
				io.out(show(outcome.applied));
				return;
			}
			const failure = explain(outcome.error, wanted, session);
			io.err(`${printable(failure.message)}\n`);
			exitCode ||= failure.exitCode;
		},
	});
	progress.clear();
	if (io.signal.aborted) {
		const more = uncertain === 0 ? "" : `, and ${uncertain} more may have been`;
		io.err(`plinth: interrupted: ${applied} of ${all.length} documents were applied${more}\n`);
		return exitCodes.interrupted;
	}
	return exitCode;
}

/** What is printed for a document that was applied. */
async function outcomeOf(
	types: KnownTypes,
	{ diff, dryRun }: ApplyFlags,
	color: boolean,
): Promise<(applied: Applied) => string> {
	const showDiff = diff ? (await import("../output/show-diff.ts")).showDiff : undefined;
	return ({ kind, before, after }) => {
		const changes = kind === "unchanged" ? undefined : showDiff?.(before, after, types, color);
		const note = dryRun === undefined ? "" : " (server dry run)";
		return `${changes ?? ""}${resourceName(after)} ${kind}${note}\n`;
	};
}

/** The failure, with the position of the document in its file, or of the field that the server names. */
function explain(error: unknown, wanted: WantedResource, session: ServerSession): Failure {
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
