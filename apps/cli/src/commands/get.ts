import type { GetFlags } from "../actions/get.ts";
import { type AddCommand, allNamespacesOption, outputOption } from "./runner.ts";

/** `plinth get`: prints resources by name, or all resources of a type. */
export const addGet: AddCommand = (program, run) => {
	program
		.command("get <type> [names...]")
		.description("print resources by name, or all resources of a type")
		.addOption(outputOption())
		.addOption(allNamespacesOption())
		.action((type: string, names: readonly string[], flags: GetFlags) =>
			run(async (session) => {
				const { get } = await import("../actions/get.ts");
				return get(await session.server(), [type, ...names], flags);
			}),
		);
};

/** `plinth list`: prints the resources of a type, optionally by name prefix. */
export const addList: AddCommand = (program, run) => {
	program
		.command("list <type>")
		.description("print the resources of a type")
		.option("--prefix <prefix>", "only resources whose names begin with this")
		.addOption(outputOption())
		.addOption(allNamespacesOption())
		.action((type: string, flags: GetFlags) =>
			run(async (session) => {
				const { list } = await import("../actions/get.ts");
				return list(await session.server(), type, flags);
			}),
		);
};
