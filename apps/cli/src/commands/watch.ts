import type { WatchFlags } from "../actions/watch.ts";
import { resourceFormats } from "../output/output-format.ts";
import {
	type AddCommand,
	allNamespacesOption,
	outputOption,
	regionsOption,
	wordsOf,
} from "./runner.ts";

/** `plinth watch`: prints the current resources, then every change, until it is interrupted. */
export const addWatch: AddCommand = (program, run) => {
	program
		.command("watch <type> [name]")
		.description("print the current resources, then every change")
		.option("--prefix <prefix>", "only resources whose names begin with this")
		.option("--changes-only", "omit the current resources")
		.addOption(outputOption(resourceFormats))
		.addOption(allNamespacesOption())
		.addOption(regionsOption())
		.action((type: string, name: string | undefined, flags: WatchFlags) =>
			run(async (session) => {
				const { watch } = await import("../actions/watch.ts");
				return watch(await session.server(), wordsOf(type, name), flags);
			}),
		);
};
