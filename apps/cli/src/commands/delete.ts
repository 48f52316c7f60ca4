import type { DeleteFlags } from "../actions/delete.ts";
import { type AddCommand, dryRunOption } from "./runner.ts";

/** `plinth delete`: deletes resources by name, those in files, or all of a type. */
export const addDelete: AddCommand = (program, run) => {
	program
		.command("delete [type] [names...]")
		.description("delete resources by name, those in files, or all of a type")
		.option("--all", "delete all resources of the type in the namespace")
		.option("-y, --yes", "with --all, do not ask for confirmation")
		.option("-f, --filename <file...>", "file, folder of files, or - for standard input")
		.option("--ignore-not-found", "do not fail if a resource does not exist")
		.option("--wait", "wait until finalizers are removed and the resources are gone")
		.option("--timeout <time>", "how long to wait for each resource; 0s to check once", "30s")
		.addOption(dryRunOption())
		.action((type: string | undefined, names: readonly string[], flags: DeleteFlags) =>
			run(
				async (session) => {
					const { deleteAll } = await import("../actions/delete.ts");
					const words = type === undefined ? [] : [type, ...names];
					return deleteAll(await session.server(), words, flags);
				},
				{ finishesUnread: true },
			),
		);
};
