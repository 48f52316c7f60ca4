import { Option } from "commander";
import type { SettleFlags } from "../actions/settle.ts";
import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, dryRunOption, outputOption } from "./runner.ts";

/** `plinth deployments`: the deployments that a server knows, and the references there that have no target. */
export const addDeployments: AddCommand = (program, run) => {
	const deployments = program
		.command("deployments")
		.summary("print the deployments that the server knows, or settle references to one")
		.usage("[flags] [name]")
		.description(
			"print the deployments that the server knows, and how many references the resources of the server's own deployment have there; with a name, those that have no target",
		)
		.argument("[name]", "name or uid of a deployment, or SERVICE/REGION")
		.addOption(outputOption())
		.action((name: string | undefined, { output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { listDeployments, describeDeployment } = await import("../actions/deployments.ts");
				const server = await session.server();
				return name === undefined
					? listDeployments(server, output)
					: describeDeployment(server, name, output);
			}),
		);
	deployments
		.command("settle <name>")
		.summary("give up references that have no target in a deployment, or keep them")
		.description(
			"give up references of the server's own deployment that have no target in another one, after a restore for example, or keep them. Prints what would be done, then asks. By default, the rule of each reference decides: unset references are cleared, the resources of cascade references are deleted, and block references are left",
		)
		.addOption(new Option("--unset", "clear the references").conflicts(["cascade", "keep"]))
		.addOption(
			new Option("--cascade", "delete the resources with the references").conflicts("keep"),
		)
		.option("--keep", "leave the references as they are, and report them no longer as a problem")
		.option("--type <type...>", "only references of resources of these types")
		.option("--target <name...>", "only references to targets with these names")
		.option("--kept", "include references that were kept before")
		.option("-y, --yes", "do not ask")
		.addOption(dryRunOption())
		.action((name: string, flags: SettleFlags) =>
			run(
				async (session) => {
					const { settle } = await import("../actions/settle.ts");
					return settle(await session.server(), name, flags);
				},
				{ finishesUnread: true },
			),
		);
};
