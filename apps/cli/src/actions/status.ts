import { tenancyAt } from "../api/known-types.ts";
import { listResources, readResource, warnOfMissingTenancy } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { conditionsTable } from "../output/conditions-table.ts";
import { parseTargets } from "./targets.ts";

/** Prints the conditions of the resources that the words name, or of all of a type. */
export async function status(session: ServerSession, words: readonly string[]): Promise<ExitCode> {
	const { io } = session;
	for (const target of parseTargets(words, await session.types())) {
		const resources =
			target.names.length === 0
				? await listResources(session, target.type, { namePrefix: "", everywhere: false })
				: await Promise.all(target.names.map((name) => readResource(session, target.type, name)));
		const table = conditionsTable(resources, io, { showName: true });
		if (resources.length === 0) {
			await warnOfMissingTenancy(session, tenancyAt(target.type, session.place, false));
		}
		if (table === "") {
			io.err(`no conditions reported for ${target.type.key} yet\n`);
		}
		io.out(table);
	}
	return exitCodes.ok;
}
