/**
 * The cost of constraints for a type without references, through the in-process client: over the storage in memory, where
 * nothing else takes time, and over SQLite with 64 writers. The servers of a table live through all rounds and take turns,
 * so that they have equal heaps and the same compiled code. A second server with the bare storage shows how much two
 * equal servers differ.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { ComparisonTable, interleaveSteps, type Steps, unlessQuick } from "@plinth/bench";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { LabelSchema } from "@plinth/resource-service/testing";
import { LocalLeases } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import {
	alphaSpec,
	BenchNetwork,
	type BenchServer,
	bareServer,
	metaSpec,
	type Spec,
} from "./servers.ts";

const batch = unlessQuick(2_000, 20);
const rounds = unlessQuick(40, 2);
const warmUpRounds = unlessQuick(10, 0);

const Label = defineType(LabelSchema);

const label = (name: string, title: string) =>
	resourceOf(Label, { id: idOf(Label, name), data: create(LabelSchema, { title }) });

/** Microseconds of wall time for each of the batch, by writers that each have one call in flight. */
async function timed(writers: number, run: (i: number) => Promise<unknown>): Promise<number> {
	globalThis.gc?.();
	const startMs = performance.now();
	let next = 0;
	const write = async () => {
		while (next < batch) {
			await run(next++);
		}
	};
	await Promise.all(Array.from({ length: writers }, write));
	return ((performance.now() - startMs) * 1_000) / batch;
}

/** One round of a server; what it creates is deleted in the end, so that no round is larger than another. */
function stepsOf({ client, bury }: BenchServer, writers: number): Steps {
	return {
		create: () => timed(writers, (i) => client.write({ resource: label(`label-${i}`, "created") })),
		update: () => timed(writers, (i) => client.write({ resource: label(`label-${i}`, "updated") })),
		async delete() {
			const duration = await timed(writers, (i) =>
				client.delete({ id: idOf(Label, `label-${i}`) }),
			);
			await bury();
			return duration;
		},
	};
}

type Storage = NonNullable<Spec["storage"]>;

/** Compares servers over storages of one kind. */
async function compare(
	title: string,
	writers: number,
	open: () => Promise<Storage>,
): Promise<void> {
	const network = new BenchNetwork();
	await using _meta = await network.start(metaSpec);
	await using constrained = await network.start({
		...{ ...alphaSpec, types: [Label] },
		storage: await open(),
	});
	await using bare = await bareServer([Label], (await open()).backend);
	await using other = await bareServer([Label], (await open()).backend);
	const figures = await interleaveSteps(
		{
			"with constraints": () => stepsOf(constrained, writers),
			"another bare storage": () => stepsOf(other, writers),
			"bare storage": () => stepsOf(bare, writers),
		},
		{ rounds, warmUpRounds },
	);
	const table = new ComparisonTable(title, "µs", { baseline: "bare storage" });
	for (const [step, byContender] of Object.entries(figures)) {
		table.add(step, byContender);
	}
	table.print();
}

// Timers of Plinth keep no process alive.
const alive = setInterval(() => {}, 1_000);
await compare("A type without references, in process and in memory", 1, async () => {
	const leases = new LocalLeases();
	return { leases, backend: createMemoryBackend({ leases, limits: { logEvents: 2_000 } }) };
});
const folder = await mkdtemp(join(tmpdir(), "plinth-bench-"));
let files = 0;
await compare("The same over SQLite, with 64 writers", 64, async () => {
	const leases = new LocalLeases();
	files += 1;
	return {
		leases,
		backend: await createSqliteBackend({ path: join(folder, `${files}.db`), leases }),
	};
});
clearInterval(alive);
await rm(folder, { recursive: true });
