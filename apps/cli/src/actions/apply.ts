import { ConnectError } from "@connectrpc/connect";
import { describeProblem, type KnownTypes } from "@plinth/documents";
import { locate, positionOf, type WantedResource } from "@plinth/documents/yaml";
import { displayName, labelProblem } from "@plinth/resource";
import { callFailure } from "../api/call-failure.ts";
import type { ServerSession } from "../api/server-session.ts";
import { applyAll } from "../apply/apply-all.ts";
import type { Applied } from "../apply/apply-resource.ts";
import type { Pruned } from "../apply/prune.ts";
import { readFiles } from "../apply/read-files.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/printable.ts";
import { ProgressLine } from "../output/progress-line.ts";
import { agrees, assertMayAsk } from "./agree.ts";

/** The flags of `plinth apply`. */
export interface ApplyFlags {
	readonly filename: readonly string[];
	readonly diff?: boolean;
	readonly dryRun?: "server";
	readonly set?: string;
	/** The types of which resources are pruned. */
	readonly prune?: readonly string[];
	readonly yes?: boolean;
}

/** Creates or updates the resources of all documents. */
export async function apply(session: ServerSession, flags: ApplyFlags): Promise<ExitCode> {
	const types = await session.types();
	const pruned = prunedTypes(session, types, flags);
	const show = await outcomeOf(types, flags, session.io.color);
	const wanted = await wantedOf(session, flags);
	const exitCode = await applyDocuments(session, wanted, flags, show);
	if (pruned === undefined) {
		return exitCode;
	}
	if (exitCode !== exitCodes.ok) {
		session.io.err("plinth: nothing is pruned, since not all documents were applied\n");
		return exitCode;
	}
	return pruneSet(session, { ...pruned, wanted }, flags);
}

/** The set and the types to prune. @throws Failure if the flags do not fit together. */
function prunedTypes(
	{ io }: ServerSession,
	types: KnownTypes,
	flags: ApplyFlags,
): Pick<Pruned, "set" | "types"> | undefined {
	const { set, prune } = flags;
	const problem = set === undefined ? undefined : labelProblem(set);
	if (problem !== undefined) {
		throw usageFailure(`--set ${JSON.stringify(set)}: the name of a set ${problem}`);
	}
	if (prune === undefined) {
		return undefined;
	}
	if (set === undefined) {
		throw usageFailure("--prune deletes resources of a set: name it with --set");
	}
	const found = prune.flatMap((words) => words.split(",")).map((word) => types.find(word));
	assertMayAsk(io, flags, "delete resources");
	return { set, types: found };
}

/** Deletes what the set has and its documents lack, after it was listed and somebody has agreed. */
async function pruneSet(
	session: ServerSession,
	pruned: Pruned,
	flags: ApplyFlags,
): Promise<ExitCode> {
	const { io } = session;
	const { dryRun, yes } = flags;
	const { findPruned, prune } = await import("../apply/prune.ts");
	const found = await findPruned(session, pruned);
	if (dryRun !== undefined) {
		io.out(
			found.map((each) => `${resourceName(each)} would be pruned (server dry run)\n`).join(""),
		);
		return exitCodes.ok;
	}
	if (found.length === 0) {
		return exitCodes.ok;
	}
	if (!yes) {
		io.out(found.map((each) => `${resourceName(each)} is in the set, and in no file\n`).join(""));
	}
	const count = found.length === 1 ? "this resource" : `these ${found.length} resources`;
	if (!(await agrees(io, flags, `Delete ${count}?`))) {
		io.err("plinth: nothing was pruned\n");
		return exitCodes.ok;
	}
	return prune(session, pruned.set, found);
}

/** The resources that the files describe. */
async function wantedOf(
	session: ServerSession,
	{ filename, set }: Pick<ApplyFlags, "filename" | "set">,
): Promise<readonly WantedResource[]> {
	const { io, place } = session;
	const all = await readFiles(filename, io, { types: await session.types(), place });
	return set === undefined ? all : all.map((wanted) => ({ ...wanted, set }));
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
	const wanted = await wantedOf(session, { filename });
	const exitCode = await applyDocuments(session, wanted, { dryRun: "server" }, show);
	return exitCode === exitCodes.ok && differs ? exitCodes.differs : exitCode;
}

/** @param show - what is printed for a document that was applied. */
async function applyDocuments(
	session: ServerSession,
	all: readonly WantedResource[],
	flags: Pick<ApplyFlags, "dryRun">,
	show: (applied: Applied) => string,
): Promise<ExitCode> {
	const { io, connection } = session;
	const { server } = session.settings.endpoint;
	const types = await session.types();
	const progress = new ProgressLine(io);
	let exitCode: ExitCode = exitCodes.ok;
	let isUnreachable = false;
	const { applied, uncertain } = await applyAll(all, {
		resources: connection.resources,
		clock: io.clock,
		signal: io.signal,
		dryRun: flags.dryRun !== undefined,
		types,
		isFatal: (error) => {
			const isFatal = callFailure(error, server).exitCode === exitCodes.unreachable;
			isUnreachable ||= isFatal;
			return isFatal;
		},
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
	const more = uncertain === 0 ? "" : `, and ${uncertain} more may have been`;
	const count = `${applied} of ${all.length} documents were applied${more}`;
	if (io.signal.aborted) {
		io.err(`plinth: interrupted: ${count}\n`);
		return exitCodes.interrupted;
	}
	if (isUnreachable && flags.dryRun === undefined) {
		io.err(`plinth: the server was lost: ${count}\n`);
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
	const { server } = session.settings.endpoint;
	const { exitCode, message, cause } = callFailure(error, server, "resource");
	if (cause instanceof ConnectError && message.startsWith("resource.")) {
		return new Failure(exitCode, locate(wanted.source, message));
	}
	const { origin } = wanted.source;
	const position =
		cause instanceof ConnectError
			? positionOf(wanted.source, message)
			: wanted.source.positionOf("");
	return new Failure(
		exitCode,
		describeProblem(origin, { position, path: displayName(wanted.id), message }),
	);
}
