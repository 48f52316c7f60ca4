import type { AddCommand } from "./runner.ts";

/** `plinth status`: prints the conditions of resources, one per row. */
export const addStatus: AddCommand = (program, run) => {
	program
		.command("status <type> [names...]")
		.description("print the conditions of resources; ? marks those of an older generation")
		.action((type: string, names: readonly string[]) =>
			run(async (session) => {
				const { status } = await import("../actions/status.ts");
				return status(await session.server(), [type, ...names]);
			}),
		);
};
