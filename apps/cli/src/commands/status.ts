import { listResources, readResource } from "../api/read-resources.ts";
import { exitCodes } from "../exit-codes.ts";
import { conditionsTable } from "../output/conditions-table.ts";
import type { AddCommand } from "./runner.ts";
import { parseTargets } from "./targets.ts";

/** `plinth status`: prints the conditions of resources, one per row. */
export const addStatus: AddCommand = (program, run) => {
	program
		.command("status <type> [names...]")
		.description("print the conditions of resources; ? marks those of an older generation")
		.action((type: string, names: readonly string[]) =>
			run(async (session) => {
				const { io } = session;
				for (const target of parseTargets([type, ...names], await session.types())) {
					const resources =
						target.names.length === 0
							? await listResources(session, target.type, { namePrefix: "", everywhere: false })
							: await Promise.all(
									target.names.map((name) => readResource(session, target.type, name)),
								);
					const table = conditionsTable(resources, io, { showName: true });
					if (table === "") {
						io.err(`no conditions reported for ${target.type.key} yet\n`);
					}
					io.out(table);
				}
				return exitCodes.ok;
			}),
		);
};
