// Commits a second and their latency, by how many write at once, against bare transactions of etcd:
// one per call, through the same client with the same concurrency, in the same run.
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
	ComparisonTable,
	interleave,
	type Load,
	latencyCells,
	numberOption,
	runCallers,
	unlessQuick,
} from "@plinth/bench";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { EtcdClient } from "../src/client/etcd-client.ts";
import { EtcdProcess } from "../src/etcd-process.fixture.ts";
import { Compare_CompareTarget, TxnRequestSchema } from "../src/gen/etcdserverpb/rpc_pb.ts";
import { createEtcdBackend } from "../src/index.ts";
import { Keys } from "../src/keys.ts";

const seconds = numberOption("seconds", 1, 0.1);

function artist(name: string): Resource {
	return create(ResourceSchema, {
		id: {
			name,
			uid: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
			type: { group: "demo", groupVersion: "v2", kind: "Artist" },
			tenancy: { partition: "default", namespace: "default" },
		},
		generation: "01J9ZZZZZZZZZZZZZZZZZZZZZZ",
		metadata: { team: "jazz" },
		data: create(AnySchema, {
			typeUrl: "type.googleapis.com/acme.demo.v2.Artist",
			value: new Uint8Array(300),
		}),
	});
}

/** Each writer creates a hundred resources, and then replaces them in turn. */
const names = 100;

async function throughBackend(url: string, prefix: string, writers: number): Promise<Load> {
	const backend = await createEtcdBackend({ endpoints: [url], prefix });
	const versions = new Map<string, string>();
	const measured = await runCallers(writers, seconds, async (writer, step) => {
		const name = `artist-${writer}-${step % names}`;
		const resource = artist(name);
		const expectedVersion = versions.get(name) ?? "";
		const { version } = await backend.commit([{ op: "put", resource, expectedVersion }]);
		versions.set(name, version);
	});
	await backend.close();
	return measured;
}

async function bare(url: string, prefix: string, writers: number): Promise<Load> {
	const client = new EtcdClient({ endpoints: [url] });
	const keys = new Keys(prefix);
	const versions = new Map<string, bigint>();
	const measured = await runCallers(writers, seconds, async (writer, step) => {
		const resource = artist(`artist-${writer}-${step % names}`);
		const name = keys.resource(resource.id ?? { name: "" });
		const key = Buffer.from(name);
		const { header, succeeded } = await client.transaction(
			create(TxnRequestSchema, {
				compare: [
					{
						key,
						target: Compare_CompareTarget.MOD,
						targetUnion: { case: "modRevision", value: versions.get(name) ?? 0n },
					},
				],
				success: [
					{
						request: {
							case: "requestPut",
							value: { key, value: toBinary(ResourceSchema, resource) },
						},
					},
				],
			}),
		);
		if (!succeeded || header === undefined) {
			throw new Error("a bare transaction failed");
		}
		versions.set(name, header.revision);
	});
	client.close();
	return measured;
}

const etcd = await EtcdProcess.start();
const table = new ComparisonTable("Time per commit of all writers together", "µs");
for (const writers of [1, 16, 64, 256]) {
	let last: Load | undefined;
	let turn = 0;
	const figures = await interleave(
		{
			"group commit": async () => {
				last = await throughBackend(etcd.url, `/grouped-${writers}-${turn++}`, writers);
				return 1e6 / last.perSecond;
			},
			"bare transactions": async () =>
				1e6 / (await bare(etcd.url, `/bare-${writers}-${turn++}`, writers)).perSecond,
		},
		{ rounds: unlessQuick(5, 1), warmUpRounds: 0 },
	);
	table.add(`${writers} writers`, figures, latencyCells(last?.latenciesMs ?? []));
}
await etcd.dispose();
table.print();
