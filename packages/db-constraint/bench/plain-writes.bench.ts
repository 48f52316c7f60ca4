/**
 * The cost of constraints for a type without references, through the in-process client over the in-memory storage. All
 * servers live through all rounds and take turns, so that they have equal heaps and the same compiled code. A second
 * server with the bare storage shows how much two equal servers differ.
 */
import { create } from "@bufbuild/protobuf";
import { ComparisonTable, interleaveSteps, type Steps, unlessQuick } from "@plinth/bench";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { LabelSchema } from "@plinth/resource-service/testing";
import { alphaSpec, BenchNetwork, type BenchServer, bareServer, metaSpec } from "./servers.ts";

const batch = unlessQuick(2_000, 20);
const rounds = unlessQuick(40, 2);
const warmUpRounds = unlessQuick(10, 0);

const Label = defineType(LabelSchema);

const label = (name: string, title: string) =>
	resourceOf(Label, { id: idOf(Label, name), data: create(LabelSchema, { title }) });

/** Microseconds of wall time for each of the batch. */
async function timed(run: (i: number) => Promise<unknown>): Promise<number> {
	globalThis.gc?.();
	const startMs = performance.now();
	for (let i = 0; i < batch; i++) {
		await run(i);
	}
	return ((performance.now() - startMs) * 1_000) / batch;
}

/** One round of a server; what it creates is deleted in the end, so that no round is larger than another. */
function stepsOf({ client, bury }: BenchServer): Steps {
	return {
		create: () => timed((i) => client.write({ resource: label(`label-${i}`, "created") })),
		update: () => timed((i) => client.write({ resource: label(`label-${i}`, "updated") })),
		async delete() {
			const duration = await timed((i) => client.delete({ id: idOf(Label, `label-${i}`) }));
			await bury();
			return duration;
		},
	};
}

// Timers of Plinth keep no process alive.
const alive = setInterval(() => {}, 1_000);
const network = new BenchNetwork();
await using _meta = await network.start(metaSpec);
await using constrained = await network.start({ ...alphaSpec, types: [Label] });
await using bare = await bareServer([Label]);
await using other = await bareServer([Label]);
const figures = await interleaveSteps(
	{
		"with constraints": () => stepsOf(constrained),
		"another bare storage": () => stepsOf(other),
		"bare storage": () => stepsOf(bare),
	},
	{ rounds, warmUpRounds },
);
clearInterval(alive);
const table = new ComparisonTable("A type without references, in process and in memory", "µs", {
	baseline: "bare storage",
});
for (const [step, byContender] of Object.entries(figures)) {
	table.add(step, byContender);
}
table.print();
