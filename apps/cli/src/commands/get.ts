import { Option } from "commander";
import type { GetFlags } from "../actions/get.ts";
import { resourceFormats } from "../output/output-format.ts";
import { type AddCommand, allNamespacesOption, outputOption, regionsOption } from "./runner.ts";

/** `plinth get`: prints resources by name, or all resources of a type. */
export const addGet: AddCommand = (program, run) => {
	program
		.command("get <type> [names...]")
		.description("print resources by name, or all resources of a type")
		.addOption(outputOption(resourceFormats))
		.addOption(sortOption())
		.addOption(watchOption())
		.addOption(allNamespacesOption())
		.addOption(regionsOption())
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
		.addOption(outputOption(resourceFormats))
		.addOption(sortOption())
		.addOption(watchOption())
		.addOption(allNamespacesOption())
		.addOption(regionsOption())
		.action((type: string, flags: GetFlags) =>
			run(async (session) => {
				const { list } = await import("../actions/get.ts");
				return list(await session.server(), type, flags);
			}),
		);
};

/** `--sort-by` of the commands that print lists. */
function sortOption(): Option {
	return new Option(
		"--sort-by <field>",
		'order by "name", "age" or a field, such as data.priority',
	);
}

/** `-w` of the commands that print lists. */
function watchOption(): Option {
	return new Option("-w, --watch", "print every change afterwards, until it is interrupted");
}
