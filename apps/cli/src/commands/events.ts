import type { EventFlags } from "../actions/events.ts";
import { maxEvents } from "../limits.ts";
import { resourceFormats } from "../output/output-format.ts";
import { type AddCommand, allNamespacesOption, limitOption, outputOption } from "./runner.ts";

/** `plinth events`: what has happened to resources. */
export const addEvents: AddCommand = (program, run) => {
	program
		.command("events [type] [name]")
		.description(
			"print the events of the last hour, newest last: of a resource, of a type, or of the namespace",
		)
		.option("-w, --watch", "then print new events as they occur, until interrupted")
		.option("--warnings", "print only warnings")
		.addOption(limitOption("print at most this many events, the newest ones", 200, maxEvents))
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
