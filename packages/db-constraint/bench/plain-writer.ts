/**
 * A server with a type without references, and its writers, in the process of its own that `plain-writes.bench.ts` starts.
 * It responds to the name of a step with the microseconds of processor time that a call took.
 */
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { unlessQuick } from "@plinth/bench";
import { defineType, idOf, resourceOf } from "@plinth/resource";
import { LabelSchema } from "@plinth/resource-service/testing";
import { LocalLeases } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import { alphaSpec, BenchNetwork, type BenchServer, bareServer, metaSpec } from "./servers.ts";

/** What a writer is started with. */
export interface WriterOptions {
	/** Whether the storage maintains references. */
	readonly constrained: boolean;
	/** Calls in flight. */
	readonly writers: number;
	/** The folder of its SQLite file; it stores in memory if absent. */
	readonly folder?: string;
}

/** What a round does, in this order. What it creates is deleted, so that no round is larger than another. */
export const steps = ["create", "update", "delete"] as const;

/** One of the steps. */
export type Step = (typeof steps)[number];

const batch = unlessQuick(2_000, 20);

const Label = defineType(LabelSchema);

const label = (i: number, title: string) =>
	resourceOf(Label, { id: idOf(Label, `label-${i}`), data: create(LabelSchema, { title }) });

async function openServer({ constrained, folder }: WriterOptions): Promise<BenchServer> {
	const leases = new LocalLeases();
	const backend =
		folder === undefined
			? createMemoryBackend({ leases, limits: { logEvents: 2_000 } })
			: await createSqliteBackend({ path: join(folder, `${process.pid}.db`), leases });
	// Two storages in a process slow each other down, so every server that is measured has this second one beside it.
	const network = new BenchNetwork();
	await network.start(metaSpec);
	if (!constrained) {
		return bareServer([Label], backend);
	}
	return network.start({ ...alphaSpec, types: [Label], storage: { leases, backend } });
}

/** Microseconds of processor time of a call, measured over a batch of them. */
async function timed(writers: number, call: (i: number) => Promise<unknown>): Promise<number> {
	const start = process.cpuUsage();
	let next = 0;
	const write = async () => {
		while (next < batch) {
			await call(next++);
		}
	};
	await Promise.all(Array.from({ length: writers }, write));
	const { user, system } = process.cpuUsage(start);
	return (user + system) / batch;
}

async function run(step: Step, { client, bury }: BenchServer, writers: number): Promise<number> {
	switch (step) {
		case "create":
			return timed(writers, (i) => client.write({ resource: label(i, "created") }));
		case "update":
			return timed(writers, (i) => client.write({ resource: label(i, "updated") }));
		case "delete": {
			const duration = await timed(writers, (i) =>
				client.delete({ id: idOf(Label, `label-${i}`) }),
			);
			await bury();
			return duration;
		}
	}
}

if (import.meta.main) {
	const options: WriterOptions = JSON.parse(process.argv[2] ?? "");
	// Timers of Plinth keep no process alive, and it does not listen to messages yet.
	process.channel?.ref();
	const server = await openServer(options);
	process.on("message", async (step: Step) => {
		process.send?.(await run(step, server, options.writers));
	});
	process.on("disconnect", async () => {
		await server[Symbol.asyncDispose]();
		process.exit();
	});
	process.send?.("ready");
}
