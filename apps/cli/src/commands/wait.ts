import type { WaitFlags } from "../actions/wait.ts";
import { type AddCommand, regionOption } from "./runner.ts";

/** `plinth wait`: waits until a condition holds, or until a resource is created or deleted. */
export const addWait: AddCommand = (program, run) => {
	program
		.command("wait <type> [names...]")
		.description("wait until a condition holds; return at once if it already does")
		.requiredOption(
			"--for <what>",
			"condition=TYPE (is True), condition=TYPE=False, delete or create",
		)
		.option(
			"--timeout <time>",
			"how long to wait, such as 500ms, 30s, 2m or 1h; 0s to check once",
			"30s",
		)
		.addOption(regionOption("wait for copies of the resources of this region"))
		.action((type: string, names: readonly string[], flags: WaitFlags) =>
			run(
				async (session) => {
					const { wait } = await import("../actions/wait.ts");
					return wait(session, [type, ...names], flags);
				},
				{ finishesUnread: true },
			),
		);
};
