import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth controllers`: the state of the controllers of one server. */
export const addControllers: AddCommand = (program, run) => {
	program
		.command("controllers")
		.description("print the state of the server's controllers")
		.addOption(outputOption())
		.action(({ output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { controllers } = await import("../actions/controllers.ts");
				return controllers(await session.server(), output);
			}),
		);
};
