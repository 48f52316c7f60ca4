import { InvalidArgumentError } from "commander";
import type { HistoryFlags } from "../actions/history.ts";
import { type AddCommand, outputOption, wordsOf } from "./runner.ts";

/** More versions than anyone reads. */
const maxLimit = 1_000;

/** `plinth history`: how a resource has changed. */
export const addHistory: AddCommand = (program, run) => {
	program
		.command("history <type> [name]")
		.description(
			"print the recent versions of a resource that the server still knows, newest first: what changed, when, and by whom",
		)
		.option("--limit <number>", "print at most this many versions, the newest ones", parseLimit, 20)
		.addOption(outputOption(["table", "yaml", "json", "wide"]))
		.action((type: string, name: string | undefined, flags: HistoryFlags) =>
			run(async (session) => {
				const { history } = await import("../actions/history.ts");
				return history(await session.server(), wordsOf(type, name), flags);
			}),
		);
};

function parseLimit(text: string): number {
	const limit = Number(text);
	if (!(Number.isInteger(limit) && limit >= 1 && limit <= maxLimit)) {
		throw new InvalidArgumentError(`must be a whole number from 1 to ${maxLimit}`);
	}
	return limit;
}
