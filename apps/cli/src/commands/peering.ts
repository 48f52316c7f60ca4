import type { OutputFormat } from "../output/output-format.ts";
import { type AddCommand, outputOption } from "./runner.ts";

/** `plinth peering`: relations to clusters of other owners, and what is copied from them. */
export const addPeering: AddCommand = (program, run) => {
	const peering = program
		.command("peering")
		.summary("join clusters of different owners, and see what is copied between them")
		.description(
			"join clusters of different owners: the cluster that exports makes a token, and the one that imports uses it",
		);
	peering
		.command("token <name>")
		.summary("print a token by which another cluster can dial this one")
		.description(
			"create the Peering NAME, unless it exists, and print a token for the cluster that will dial this one. The token is a secret; it can be used once, within an hour",
		)
		.option(
			"--address <url>",
			"address at which the other cluster reaches this one (default: that of the server)",
		)
		.option(
			"--peer-ca-file <file>",
			"certificates that the other cluster checks the address against, in PEM (default: --ca-file)",
		)
		.action((name: string, flags: { readonly address?: string; readonly peerCaFile?: string }) =>
			run(
				async (session) => {
					const { createToken } = await import("../peering/peering-actions.ts");
					return createToken(await session.server(), name, flags);
				},
				{ finishesUnread: true },
			),
		);
	peering
		.command("establish <token>")
		.summary("use a token of another cluster")
		.description(
			"create the Peering by which this cluster dials the other one, and exchange the token for a credential. Other users of the machine can see arguments: pass - to read the token from standard input",
		)
		.option(
			"--name <name>",
			"name of the Peering in this cluster (default: derived from the token)",
		)
		.action((token: string, { name = "" }: { readonly name?: string }) =>
			run(
				async (session) => {
					const { establish } = await import("../peering/peering-actions.ts");
					return establish(await session.server(), token, name);
				},
				{ finishesUnread: true },
			),
		);
	peering
		.command("list")
		.summary("print the peerings and their imports, with lag and age")
		.description(
			"print the peerings, and of each import its state, its copies, what was LEFT-OUT, for how long the copies have been behind (LAG), and how long ago the other cluster was heard (AGE). -o yaml has the reasons why something was left out",
		)
		.addOption(outputOption())
		.action(({ output }: { readonly output: OutputFormat }) =>
			run(async (session) => {
				const { listPeerings } = await import("../peering/peering-actions.ts");
				return listPeerings(await session.server(), output);
			}),
		);
};
