import { InvalidArgumentError } from "commander";
import type { EventFlags } from "../actions/events.ts";
import { resourceFormats } from "../output/output-format.ts";
import { type AddCommand, allNamespacesOption, outputOption } from "./runner.ts";

/** The most events that a server returns. */
const maxLimit = 10_000;

/** `plinth events`: what has happened to resources. */
export const addEvents: AddCommand = (program, run) => {
	program
		.command("events [type] [name]")
		.description(
			"print the events of the last hour, newest last: of a resource, of a type, or of the namespace",
		)
		.option("-w, --watch", "then print new events as they occur, until interrupted")
		.option("--warnings", "print only warnings")
		.option("--limit <number>", "print at most this many events, the newest ones", parseLimit, 200)
		.addOption(outputOption(resourceFormats))
		.addOption(allNamespacesOption())
		.action((type: string | undefined, name: string | undefined, flags: EventFlags) =>
			run(async (session) => {
				const { events } = await import("../actions/events.ts");
				const words = [type, name].filter((word) => word !== undefined);
				return events(await session.server(), words, flags);
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
