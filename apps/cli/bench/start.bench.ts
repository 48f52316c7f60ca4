/*
 * How long a call of the command line takes, from the start of its process to its end, next to an empty program of
 * Node.js in the same run. Its compiled code has been kept by a run before. Build the packages first to also measure
 * `plinth` as it is published.
 *
 *   pnpm bench start
 *   pnpm bench start --against=../../../plinth-before
 */
import { ComparisonTable, interleave, unlessQuick } from "@plinth/bench";
import { createServer } from "@plinth/server";
import { programs, removeHome, runNode } from "./plinth-process.ts";

const server = createServer({
	storage: { kind: "memory" },
	listen: { host: "127.0.0.1", port: 0 },
});
await server.start();

const commands: Readonly<Record<string, readonly string[]>> = {
	"plinth --help": ["--help"],
	"plinth version": ["version"],
	"plinth get": ["get", "Namespace", "--server", server.address],
};

const empty = "node -e 0";
const table = new ComparisonTable("Start to end", "ms", { baseline: empty });
for (const [name, args] of Object.entries(commands)) {
	const contenders = Object.entries(programs).map(
		([program, main]) => [program, () => runNode([...main, ...args])] as const,
	);
	const figures = await interleave(
		{ [empty]: () => runNode(["-e", "0"]), ...Object.fromEntries(contenders) },
		{ rounds: unlessQuick(15, 2), warmUpRounds: 2 },
	);
	table.add(name, figures);
}
table.print();
await server.stop();
await removeHome();
