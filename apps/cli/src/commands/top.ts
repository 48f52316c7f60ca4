import type { TopFlags } from "../actions/top.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth top`: a live overview of a cluster. */
export const addTop: AddCommand = (program, run) => {
	program
		.command("top")
		.description(
			"show a live overview of all servers: what needs attention, controllers, resources by type, storage",
		)
		.option("--interval <time>", "time between two overviews, from 1s to 60s", "2s")
		.option("--once", "print one overview, as without a terminal")
		.addOption(outputOption(["table", "yaml", "json"]))
		.addHelpText(
			"after",
			`
Controllers that fail or do not run come first, and types with resources that
have a false condition (FALSE), or one that describes an earlier generation
(STALE). q quits. YAML and JSON are printed once.`,
		)
		.action((flags: TopFlags) =>
			run(async (session) => {
				const { top } = await import("../actions/top.ts");
				return top(await session.server(), flags);
			}),
		);
};
