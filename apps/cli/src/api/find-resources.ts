import type { KnownType } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { printable } from "../output/printable.ts";
import { type ListOptions, listResources, readResource } from "./read-resources.ts";
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
		: readNamed(session, type, names);
}

/** The resources with these names that exist, in the order of their names. Each of the others is reported on standard error. */
async function readNamed(
	session: ServerSession,
	type: KnownType,
	names: readonly string[],
): Promise<FoundResources> {
	let exitCode: ExitCode = exitCodes.ok;
	const read = (name: string) =>
		readResource(session, type, name).catch((error: unknown) => {
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
			resources.push(result);
		}
	}
	return { resources, exitCode };
}
