import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth explain`: what a type is, or a field of it. */
export const addExplain: AddCommand = (program, run) => {
	program
		.command("explain <type> [field]")
		.description(
			"print the fields of a type, or those within one of its fields, such as data.ports",
		)
		.addOption(outputOption())
		.action((type: string, field: string | undefined, { output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { explain } = await import("../actions/types.ts");
				return explain(await session.server(), type, field, output);
			}),
		);
};
