import { idAt, isOfServer, type KnownType, referencesFinalizer, waitsOf } from "@plinth/documents";
import type { ID, Resource } from "@plinth/proto";
import { displayName, finalizersOf } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { listResources } from "../api/read-resources.ts";
import { planDeletion } from "../api/references.ts";
import type { ServerSession } from "../api/server-session.ts";
import { readStored } from "../apply/apply-resource.ts";
import { readFiles } from "../apply/read-files.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { reportedReasonsOf } from "../output/deletion-reasons.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/printable.ts";
import { agrees, assertMayAsk } from "./agree.ts";
import { parseNamedTargets } from "./targets.ts";
import { waitForDeletion } from "./wait.ts";

/** The flags of `plinth delete`. */
export interface DeleteFlags {
	readonly all?: boolean;
	readonly yes?: boolean;
	readonly filename?: readonly string[];
	readonly ignoreNotFound?: boolean;
	readonly wait?: boolean;
	readonly timeout: string;
	readonly dryRun?: "server";
}

interface DeleteTarget {
	readonly type: KnownType;
	readonly session: ServerSession;
	readonly name: string;
	/** Only this incarnation; if absent, the one that is stored. */
	readonly uid?: string;
}

/** Deletes the resources that the words name, those in files, or all of a type. */
export async function deleteAll(
	session: ServerSession,
	words: readonly string[],
	flags: DeleteFlags,
): Promise<ExitCode> {
	let exitCode: ExitCode = exitCodes.ok;
	for (const target of await deleteTargetsOf(session, words, flags)) {
		try {
			await deleteOne(target, flags);
		} catch (error) {
			if (!(error instanceof Failure) || session.io.signal.aborted) {
				throw error;
			}
			session.io.err(`plinth: ${printable(error.message)}\n`);
			exitCode ||= error.exitCode;
		}
	}
	return exitCode;
}

async function deleteTargetsOf(
	session: ServerSession,
	words: readonly string[],
	flags: DeleteFlags,
): Promise<readonly DeleteTarget[]> {
	const { filename, all } = flags;
	if ((filename === undefined) === (words.length === 0)) {
		throw usageFailure("specify what to delete: TYPE NAME…, TYPE --all, or -f FILE");
	}
	if (all) {
		return allOf(session, words, flags);
	}
	const types = await session.types();
	if (filename === undefined) {
		return parseNamedTargets(words, types).flatMap(({ type, names }) =>
			names.map((name) => ({ type, name, session })),
		);
	}
	const wanted = await readFiles(filename, session.io, { types, place: session.place });
	// Resources are often owned by those that precede them in a file.
	return wanted.toReversed().map(({ type, id }) => ({
		type,
		name: id.name,
		session: session.at({
			partition: id.tenancy?.partition || session.place.partition,
			namespace: id.tenancy?.namespace || session.place.namespace,
		}),
	}));
}

/** All resources of a type in the place of the session, after they were listed and somebody has agreed. */
async function allOf(
	session: ServerSession,
	words: readonly string[],
	flags: DeleteFlags,
): Promise<readonly DeleteTarget[]> {
	const { io } = session;
	const [word = "", ...more] = words;
	if (word === "" || more.length > 0 || word.includes("/")) {
		throw usageFailure("--all deletes all resources of one type: specify TYPE, and no names");
	}
	const type = (await session.types()).find(word);
	assertMayAsk(io, flags, "delete these resources");
	const found = await listResources(session, type, { namePrefix: "", everywhere: false });
	if (found.length === 0) {
		io.err("plinth: there is nothing to delete\n");
		return [];
	}
	if (!(flags.yes || flags.dryRun)) {
		io.out(found.map((each) => `${resourceName(each)}\n`).join(""));
		const count = found.length === 1 ? "this resource" : `these ${found.length} resources`;
		if (!(await agrees(io, flags, `Delete ${count}?`))) {
			io.err("plinth: nothing was deleted\n");
			return [];
		}
	}
	return found.flatMap(({ id }) => (id ? { type, session, name: id.name, uid: id.uid } : []));
}

async function deleteOne(
	{ type, name, uid, session }: DeleteTarget,
	flags: DeleteFlags,
): Promise<void> {
	const { io, connection, place } = session;
	const { resources } = connection;
	const id = idAt(type, name, place);
	const stored = await session.call(readStored(resources, id, io.signal));
	if (stored?.id === undefined || (uid !== undefined && stored.id.uid !== uid)) {
		if (flags.ignoreNotFound || uid !== undefined) {
			return;
		}
		throw new Failure(exitCodes.notFound, `${displayName(id)} not found`);
	}
	const dryRun = flags.dryRun !== undefined;
	// Only this incarnation, not one that was created since.
	await session.call(resources.delete({ id: stored.id, dryRun }, { signal: io.signal }));
	const printed = resourceName({ id });
	if (dryRun) {
		const finalizers = finalizersOf(stored);
		const outcome =
			finalizers.length === 0
				? "deleted (server dry run)"
				: `marked for deletion (server dry run): waiting for ${finalizers.join(", ")}`;
		io.out(`${printed} ${outcome}\n`);
		return;
	}
	const left = await leftAfter(session, stored.id);
	if (left === undefined) {
		io.out(`${printed} deleted\n`);
		return;
	}
	const reasons = await reasonsOf(session, left);
	io.out(`${printed} marked for deletion: waiting for ${reasons.join("; ")}\n`);
	if (flags.wait) {
		await waitForDeletion(session, type, name, flags.timeout);
	}
}

/** How long, and how often, it is checked whether the server has completed a deletion by itself. */
const completion = { withinMs: 1_000, everyMs: 50 } as const;

/**
 * The resource, if its deletion waits: for finalizers, for resources that reference it, or for the contents of a
 * namespace. What the server completes by itself within a second is not reported as waiting.
 */
async function leftAfter(session: ServerSession, id: ID): Promise<Resource | undefined> {
	const { io, connection } = session;
	const endMs = io.clock.monotonic() + completion.withinMs;
	for (;;) {
		const left = await session.call(readStored(connection.resources, id, io.signal));
		if (left?.id?.uid !== id.uid) {
			return undefined;
		}
		const isHeldByUsers = finalizersOf(left).some((finalizer) => !isOfServer(finalizer));
		if (isHeldByUsers || io.clock.monotonic() >= endMs) {
			return left;
		}
		await sleep(io.clock, completion.everyMs, io.signal);
	}
}

/** What the deletion of a resource waits for, and what is in the way of that. */
async function reasonsOf(session: ServerSession, left: Resource): Promise<readonly string[]> {
	const isHeld = finalizersOf(left).includes(referencesFinalizer);
	try {
		const plan = isHeld && left.id && (await planDeletion(session, left.id));
		const reasons = plan ? waitsOf(plan) : [];
		return reasons.length === 0 ? reportedReasonsOf(left) : reasons;
	} catch (error) {
		if (!(error instanceof Failure) || session.io.signal.aborted) {
			throw error;
		}
		// An older server, or one that stops: the status tells less.
		return reportedReasonsOf(left);
	}
}
