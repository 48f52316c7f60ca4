import { tenancyAt } from "@plinth/documents";
import { findResources } from "../api/find-resources.ts";
import { warnOfMissingTenancy } from "../api/read-resources.ts";
import { allRegions, checkRegion } from "../api/regions.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import type { ResourceFormat } from "../output/output-format.ts";
import { printResources } from "../output/print-resources.ts";
import { sorted } from "./sorted.ts";
import { parseTargets, type Target } from "./targets.ts";

/** The flags of `plinth get` and `plinth list`. */
export interface GetFlags {
	readonly output: ResourceFormat;
	readonly allNamespaces?: boolean;
	readonly prefix?: string;
	/** What to order by: see `sorted`. */
	readonly sortBy?: string;
	readonly watch?: boolean;
	/** The region whose copies are read, `*` for everything. */
	readonly region?: string;
}

/** Prints the resources that the words name, or all of a type. */
export async function get(
	session: ServerSession,
	words: readonly string[],
	flags: GetFlags,
): Promise<ExitCode> {
	if (flags.watch) {
		return follow(session, words, flags);
	}
	checkRegion(flags.region);
	const targets = parseTargets(words, await session.types());
	let exitCode: ExitCode = exitCodes.ok;
	for (const target of targets) {
		exitCode = (await print(session, target, flags, targets.length === 1)) || exitCode;
	}
	return exitCode;
}

/** Prints the resources of a type, optionally by name prefix. */
export async function list(
	session: ServerSession,
	type: string,
	flags: GetFlags,
): Promise<ExitCode> {
	if (flags.watch) {
		return follow(session, [type], flags);
	}
	checkRegion(flags.region);
	const known = (await session.types()).find(type);
	return print(session, { type: known, names: [] }, flags, true);
}

/** Prints what there is, and then every change, as `plinth watch` does. */
async function follow(
	session: ServerSession,
	words: readonly string[],
	{ sortBy, ...flags }: GetFlags,
): Promise<ExitCode> {
	if (sortBy !== undefined) {
		throw usageFailure(
			"--sort-by orders a list: changes are printed as they happen, so leave out -w",
		);
	}
	if (words.length > 2) {
		throw usageFailure("-w follows one resource or all of a type: give one name, or none");
	}
	const { watch } = await import("./watch.ts");
	return watch(session, words, flags);
}

async function print(
	session: ServerSession,
	{ type, names }: Target,
	flags: GetFlags,
	isAlone: boolean,
): Promise<ExitCode> {
	const everywhere = flags.allNamespaces ?? false;
	const { region } = flags;
	const { resources, exitCode } = await findResources(
		session,
		{ type, names },
		{ namePrefix: flags.prefix ?? "", everywhere, region },
	);
	if (resources.length === 0 && names.length > 0) {
		return exitCode;
	}
	if (resources.length === 0 && !everywhere && region === undefined) {
		await warnOfMissingTenancy(session, tenancyAt(type, session.place, false));
	}
	const types = await session.types();
	const { sortBy } = flags;
	const ordered = sortBy === undefined ? resources : sorted(resources, sortBy, types);
	await printResources(type, ordered, {
		io: session.io,
		types,
		format: flags.output,
		showTenancy: everywhere,
		region,
		isSingle: isAlone && names.length === 1 && region !== allRegions,
	});
	return exitCode;
}
