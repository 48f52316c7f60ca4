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
			"print the recent versions of a resource, the newest first: what changed, when, and by whom, as far as the server remembers",
		)
		.option("--limit <number>", "print the newest versions, up to this many", parseLimit, 20)
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
		throw new InvalidArgumentError(`expected a whole number from 1 to ${maxLimit}`);
	}
	return limit;
}
