import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth context`: manages the contexts of the configuration file. */
export const addContext: AddCommand = (program, run) => {
	const context = program
		.command("context")
		.description("manage contexts: named servers in the configuration file");
	context
		.command("list")
		.description("print the contexts, without their tokens; CURRENT marks the default")
		.addOption(outputOption())
		.action(({ output }: { output: OutputFormat }) =>
			run(async (session) => {
				const { listContexts } = await import("../actions/context.ts");
				return listContexts(session, output);
			}),
		);
	context
		.command("set <name>")
		.summary("create or update a context")
		.description(
			"create or update a context. It stores the values of --server, --partition, --namespace, --ca-file, --certificate-file and --key-file, and the token of --token or --token-file. Values whose flags are omitted are kept, but a new --server drops the token",
		)
		.action((name: string) =>
			run(
				async (session) => {
					const { setContext } = await import("../actions/context.ts");
					return setContext(session, name);
				},
				{ finishesUnread: true },
			),
		);
	context
		.command("use <name>")
		.description("make a context the default: commands use it without --context")
		.action((name: string) =>
			run(
				async (session) => {
					const { useContext } = await import("../actions/context.ts");
					return useContext(session, name);
				},
				{ finishesUnread: true },
			),
		);
	context
		.command("delete <name>")
		.description("delete a context from the configuration file")
		.action((name: string) =>
			run(
				async (session) => {
					const { deleteContext } = await import("../actions/context.ts");
					return deleteContext(session, name);
				},
				{ finishesUnread: true },
			),
		);
};
