import { idAt, type KnownType } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { displayName } from "@plinth/resource";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { printable } from "../output/printable.ts";
import { type ListOptions, listResources, readResource } from "./read-resources.ts";
import { allRegions } from "./regions.ts";
import type { ServerSession } from "./server-session.ts";

/** Resources that were found, and the exit code of a command that prints them. */
export interface FoundResources {
	readonly resources: readonly Resource[];
	readonly exitCode: ExitCode;
}

/** The resources with these names, or without names those of a list. */
export async function findResources(
	session: ServerSession,
	{ type, names }: { readonly type: KnownType; readonly names: readonly string[] },
	list: ListOptions,
): Promise<FoundResources> {
	return names.length === 0
		? { resources: await listResources(session, type, list), exitCode: exitCodes.ok }
		: readNamed(session, type, names, list.region);
}

/** The resources with that name in the region, or in all regions. @throws Failure if there is none. */
async function readInRegions(
	session: ServerSession,
	type: KnownType,
	name: string,
	region: string | undefined,
): Promise<readonly Resource[]> {
	if (region !== allRegions) {
		return [await readResource(session, type, name, region)];
	}
	const list = { namePrefix: name, everywhere: false, region };
	const found = await listResources(session, type, list);
	const named = found.filter(({ id }) => id?.name === name);
	if (named.length === 0) {
		const id = displayName(idAt(type, name, session.place));
		throw new Failure(exitCodes.notFound, `${id} not found in any region`);
	}
	return named;
}

/** The resources with these names that exist, in the order of their names. Each of the others is reported on standard error. */
async function readNamed(
	session: ServerSession,
	type: KnownType,
	names: readonly string[],
	region: string | undefined,
): Promise<FoundResources> {
	let exitCode: ExitCode = exitCodes.ok;
	const read = (name: string) =>
		readInRegions(session, type, name, region).catch((error: unknown) => {
			if (!(error instanceof Failure) || error.exitCode !== exitCodes.notFound) {
				throw error;
			}
			exitCode = error.exitCode;
			return error;
		});
	const resources: Resource[] = [];
	for (const result of await Promise.all(names.map(read))) {
		if (result instanceof Failure) {
			session.io.err(`plinth: ${printable(result.message)}\n`);
		} else {
			resources.push(...result);
		}
	}
	return { resources, exitCode };
}
