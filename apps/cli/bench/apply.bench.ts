/*
 * How long `plinth apply` of many documents takes, next to the same calls one at a time, in the same run:
 * resources, created and then applied again without a change. The server stores on disk.
 *
 *   pnpm bench apply
 *   pnpm bench apply --documents=200 --against=../../../plinth-before
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ComparisonTable, interleaveSteps, numberOption, unlessQuick } from "@plinth/bench";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { createServer, defineModule } from "@plinth/server";
import { connect } from "../src/api/connection.ts";
import { readStored } from "../src/apply/apply-resource.ts";
import { HallSchema } from "../testdata/gen/cinema/v1/cinema_pb.ts";
import { programs, removeHome, runNode } from "./plinth-process.ts";

const documents = numberOption("documents", 1_000, 20);
const Hall = defineType(HallSchema);

const folder = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const server = createServer({
	storage: { kind: "sqlite", directory: join(folder, "data") },
	listen: { host: "127.0.0.1", port: 0 },
	modules: [defineModule({ name: "cinema", types: [Hall] })],
});
await server.start();
const connection = connect({ server: server.address, requestTimeoutMs: 30_000 });

let rounds = 0;

/** Names that no other round has. */
function namesOfRound(): readonly string[] {
	rounds += 1;
	return Array.from({ length: documents }, (_, at) => `r${rounds}-${at}`);
}

async function applySteps(main: readonly string[]) {
	const names = namesOfRound();
	const file = join(folder, `r${rounds}.yaml`);
	await writeFile(
		file,
		names.map((name) => `type: cinema.v1.Hall\nname: ${name}\ndata: {seats: 100}\n`).join("---\n"),
	);
	const apply = () => runNode([...main, "apply", "-f", file, "--server", server.address]);
	return { created: apply, unchanged: apply };
}

async function callSteps() {
	const ids = namesOfRound().map((name) => idOf(Hall, name));
	const { signal } = new AbortController();
	const data = create(HallSchema, { seats: 100 });
	const measure = async (work: (id: (typeof ids)[number]) => Promise<unknown>) => {
		const startMs = performance.now();
		for (const id of ids) {
			await readStored(connection.resources, id, signal);
			await work(id);
		}
		return performance.now() - startMs;
	};
	return {
		created: () =>
			measure((id) => connection.resources.write({ resource: resourceOf(Hall, { id, data }) })),
		unchanged: () =>
			measure((id) =>
				connection.resources.mutateAndValidate({ resource: resourceOf(Hall, { id, data }) }),
			),
	};
}

const figures = await interleaveSteps(
	{
		...Object.fromEntries(
			Object.entries(programs).map(([name, main]) => [name, () => applySteps(main)]),
		),
		"calls one at a time": callSteps,
	},
	{ rounds: unlessQuick(5, 1), warmUpRounds: 1 },
);
const table = new ComparisonTable(`${documents} documents`, "ms", {
	baseline: "calls one at a time",
});
for (const [step, ofStep] of Object.entries(figures)) {
	table.add(step, ofStep);
}
table.print();
connection[Symbol.dispose]();
await server.stop();
await removeHome();
await rm(folder, { recursive: true });
