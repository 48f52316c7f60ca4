import type { Resource } from "@plinth/proto";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { printable } from "../output/printable.ts";
import type { KnownType } from "./known-types.ts";
import { readResource } from "./read-resources.ts";
import type { ServerSession } from "./server-session.ts";

/** The resources with these names that exist, in the order of their names. Each of the others is reported on standard error. */
export async function readNamed(
	session: ServerSession,
	type: KnownType,
	names: readonly string[],
): Promise<{ readonly resources: readonly Resource[]; readonly exitCode: ExitCode }> {
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
