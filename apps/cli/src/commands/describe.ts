import type { DescribeFlags } from "../actions/describe.ts";
import { type AddCommand, regionOption } from "./runner.ts";

/** `plinth describe`: prints resources in detail, for people to read, with the resources that they own. */
export const addDescribe: AddCommand = (program, run) => {
	program
		.command("describe <type> [names...]")
		.description(
			"print resources in detail, with their controllers, events, and the resources that they own",
		)
		.addOption(regionOption())
		.action((type: string, names: readonly string[], flags: DescribeFlags) =>
			run(async (session) => {
				const { describeAll } = await import("../actions/describe.ts");
				return describeAll(await session.server(), [type, ...names], flags);
			}),
		);
};
