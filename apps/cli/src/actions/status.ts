import { tenancyAt } from "@plinth/documents";
import { findResources } from "../api/find-resources.ts";
import { warnOfMissingTenancy } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { conditionsTable } from "../output/conditions-table.ts";
import { parseTargets } from "./targets.ts";

/** Prints the conditions of the resources that the words name, or of all of a type. */
export async function status(session: ServerSession, words: readonly string[]): Promise<ExitCode> {
	const { io } = session;
	let exitCode: ExitCode = exitCodes.ok;
	for (const target of parseTargets(words, await session.types())) {
		const { type, names } = target;
		const list = { namePrefix: "", everywhere: false };
		const { resources, exitCode: found } = await findResources(session, target, list);
		exitCode = found || exitCode;
		if (resources.length === 0 && names.length > 0) {
			continue;
		}
		const table = conditionsTable(resources, io, { showName: true });
		if (resources.length === 0) {
			await warnOfMissingTenancy(session, tenancyAt(type, session.place, false));
		}
		if (table === "") {
			io.err(`no conditions reported for ${type.key} yet\n`);
		}
		io.out(table);
	}
	return exitCode;
}
