import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth types`: prints the types of the server, or the fields of one type. */
export const addTypes: AddCommand = (program, run) => {
	program
		.command("types [type]")
		.description("print the types of the server, or the fields of one type")
		.addOption(outputOption())
		.action((type: string | undefined, { output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { types } = await import("../actions/types.ts");
				return types(await session.server(), type, output);
			}),
		);
};
