import type { HistoryFlags } from "../actions/history.ts";
import { maxVersions } from "../limits.ts";
import { type AddCommand, limitOption, outputOption, wordsOf } from "./runner.ts";

/** `plinth history`: how a resource has changed. */
export const addHistory: AddCommand = (program, run) => {
	program
		.command("history <type> [name]")
		.description(
			"print the recent versions of a resource that the server still knows, newest first: what changed, when, and by whom",
		)
		.addOption(limitOption("print at most this many versions, the newest ones", 20, maxVersions))
		.option("--before <version>", "print only versions that are older than this one")
		.addOption(outputOption(["table", "yaml", "json", "wide"]))
		.action((type: string, name: string | undefined, flags: HistoryFlags) =>
			run(async (session) => {
				const { history } = await import("../actions/history.ts");
				return history(await session.server(), wordsOf(type, name), flags);
			}),
		);
};
