import { displayName, finalizersOf } from "@plinth/resource";
import { idAt, type KnownType } from "../api/known-types.ts";
import { readStored } from "../apply/apply-resource.ts";
import { readFiles } from "../apply/read-files.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/table.ts";
import type { Session } from "../session.ts";
import { type AddCommand, dryRunOption } from "./runner.ts";
import { parseNamedTargets } from "./targets.ts";
import { waitForDeletion } from "./wait.ts";

interface DeleteFlags {
	readonly filename?: readonly string[];
	readonly ignoreNotFound?: boolean;
	readonly wait?: boolean;
	readonly timeout: string;
	readonly dryRun?: "server";
}

/** `plinth delete`: deletes resources by name, or those of files. */
export const addDelete: AddCommand = (program, run) => {
	program
		.command("delete [type] [names...]")
		.description("delete resources by name, or those that files name")
		.option("-f, --filename <file...>", "a file, a folder of files, or - for standard input")
		.option("--ignore-not-found", "take what is missing for deleted")
		.option("--wait", "wait until it is gone, where others must let go of it first")
		.option("--timeout <time>", "how long to wait for each", "30s")
		.addOption(dryRunOption())
		.action((type: string | undefined, names: readonly string[], flags: DeleteFlags) =>
			run((session) => deleteAll(session, type === undefined ? [] : [type, ...names], flags)),
		);
};

interface Doomed {
	readonly type: KnownType;
	readonly session: Session;
	readonly name: string;
}

async function deleteAll(
	session: Session,
	words: readonly string[],
	flags: DeleteFlags,
): Promise<ExitCode> {
	let exitCode: ExitCode = exitCodes.ok;
	for (const doomed of await doomedBy(session, words, flags)) {
		try {
			await deleteOne(doomed, flags);
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

async function doomedBy(
	session: Session,
	words: readonly string[],
	{ filename }: DeleteFlags,
): Promise<readonly Doomed[]> {
	const types = await session.types();
	if ((filename === undefined) === (words.length === 0)) {
		throw usageFailure("say what to delete: TYPE NAME…, or -f FILE");
	}
	if (filename === undefined) {
		return parseNamedTargets(words, types).flatMap(({ type, names }) =>
			names.map((name) => ({ type, name, session })),
		);
	}
	const wanted = await readFiles(filename, session.io, { types, place: session.place });
	// What comes later in a file is often owned by what comes earlier.
	return wanted.toReversed().map(({ type, id }) => ({
		type,
		name: id.name,
		session: session.at({
			partition: id.tenancy?.partition || session.place.partition,
			namespace: id.tenancy?.namespace || session.place.namespace,
		}),
	}));
}

async function deleteOne({ type, name, session }: Doomed, flags: DeleteFlags): Promise<void> {
	const { io, connection, place } = session;
	const { resources } = connection;
	const id = idAt(type, name, place);
	const stored = await session.call(readStored(resources, id, io.signal));
	if (stored?.id === undefined) {
		if (flags.ignoreNotFound) {
			return;
		}
		throw new Failure(exitCodes.notFound, `${displayName(id)} not found`);
	}
	const dryRun = flags.dryRun !== undefined;
	// That incarnation, and no other that may have come since.
	await session.call(resources.delete({ id: stored.id, dryRun }, { signal: io.signal }));
	const printed = resourceName({ id });
	const finalizers = finalizersOf(stored);
	const suffix = dryRun ? " (server dry run)" : "";
	if (finalizers.length === 0) {
		io.out(`${printed} deleted${suffix}\n`);
		return;
	}
	io.out(`${printed} marked for deletion${suffix}: it waits for ${finalizers.join(", ")}\n`);
	if (flags.wait && !dryRun) {
		await waitForDeletion(session, type, name, flags.timeout);
	}
}
