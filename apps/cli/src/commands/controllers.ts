import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth controllers`: the state of the controllers of a cluster. */
export const addControllers: AddCommand = (program, run) => {
	program
		.command("controllers [name]")
		.description(
			"print the state of all controllers, or the details of one: where it runs, and which resources it fails on or is reconciling",
		)
		.addOption(outputOption())
		.action((name: string | undefined, { output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { controllers } = await import("../actions/controllers.ts");
				return controllers(await session.server(), name, output);
			}),
		);
};
