import { listResources, missingTenancy, readResource } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { printResources } from "../output/print-resources.ts";
import { warn } from "../warn.ts";
import { parseTargets, type Target } from "./targets.ts";

/** The flags of `plinth get` and `plinth list`. */
export interface GetFlags {
	readonly output: OutputFormat;
	readonly allNamespaces?: boolean;
	readonly prefix?: string;
}

/** Prints the resources that the words name, or all of a type. */
export async function get(
	session: ServerSession,
	words: readonly string[],
	flags: GetFlags,
): Promise<ExitCode> {
	const targets = parseTargets(words, await session.types());
	for (const target of targets) {
		await print(session, target, flags, targets.length === 1);
	}
	return exitCodes.ok;
}

/** Prints the resources of a type, optionally by name prefix. */
export async function list(
	session: ServerSession,
	type: string,
	flags: GetFlags,
): Promise<ExitCode> {
	const known = (await session.types()).find(type);
	await print(session, { type: known, names: [] }, flags, true);
	return exitCodes.ok;
}

async function print(
	session: ServerSession,
	{ type, names }: Target,
	flags: GetFlags,
	isAlone: boolean,
): Promise<void> {
	const everywhere = flags.allNamespaces ?? false;
	const resources =
		names.length === 0
			? await listResources(session, type, { namePrefix: flags.prefix ?? "", everywhere })
			: await Promise.all(names.map((name) => readResource(session, type, name)));
	if (resources.length === 0 && !everywhere) {
		const missing = await missingTenancy(session, type);
		if (missing !== undefined) {
			warn(session.io, missing);
		}
	}
	await printResources(type, resources, {
		io: session.io,
		types: await session.types(),
		format: flags.output,
		showTenancy: everywhere,
		isSingle: isAlone && names.length === 1,
	});
}
