import type { ApplyFlags } from "../actions/apply.ts";
import { type AddCommand, dryRunOption } from "./runner.ts";

/** `plinth apply`: creates or updates resources from files. */
export const addApply: AddCommand = (program, run) => {
	program
		.command("apply")
		.description("create or update resources from YAML or JSON files")
		.requiredOption("-f, --filename <file...>", "file, folder of files, or - for standard input")
		.option("--diff", "print the changes")
		.option("--set <name>", "mark the resources as those of a set, in their metadata")
		.option(
			"--prune <type...>",
			"then delete the resources of these types that have the mark of the set, and that no file has",
		)
		.option("-y, --yes", "do not ask before resources are deleted")
		.addOption(dryRunOption())
		.action((flags: ApplyFlags) =>
			run(
				async (session) => {
					const { apply } = await import("../actions/apply.ts");
					return apply(await session.server(), flags);
				},
				{ finishesUnread: true },
			),
		);
};
