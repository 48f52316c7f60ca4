// Commits a second and their latency, by how many write at once, against bare transactions of etcd:
// one per call, through the same client with the same concurrency, in the same run.
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { EtcdClient } from "../src/client/etcd-client.ts";
import { EtcdProcess } from "../src/etcd-process.fixture.ts";
import { Compare_CompareTarget, TxnRequestSchema } from "../src/gen/etcdserverpb/rpc_pb.ts";
import { createEtcdBackend } from "../src/index.ts";
import { Keys } from "../src/keys.ts";

const seconds = Number(process.argv[2] ?? 3);

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

interface Measurement {
	readonly perSecond: number;
	readonly p50Ms: number;
	readonly p99Ms: number;
}

async function measure(
	writers: number,
	commit: (writer: number, step: number) => Promise<void>,
): Promise<Measurement> {
	const latenciesMs: number[] = [];
	const startMs = performance.now();
	const endMs = startMs + seconds * 1000;
	await Promise.all(
		Array.from({ length: writers }, async (_, writer) => {
			for (let step = 0; performance.now() < endMs; step++) {
				const beginMs = performance.now();
				await commit(writer, step);
				latenciesMs.push(performance.now() - beginMs);
			}
		}),
	);
	const tookMs = performance.now() - startMs;
	latenciesMs.sort((a, b) => a - b);
	const percentile = (share: number) =>
		latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? 0;
	return {
		perSecond: (latenciesMs.length * 1000) / tookMs,
		p50Ms: percentile(0.5),
		p99Ms: percentile(0.99),
	};
}

/** Each writer creates a hundred resources, and then replaces them in turn. */
const names = 100;

async function throughBackend(url: string, writers: number): Promise<Measurement> {
	const backend = await createEtcdBackend({ endpoints: [url], prefix: `/grouped-${writers}` });
	const versions = new Map<string, string>();
	const measured = await measure(writers, async (writer, step) => {
		const name = `artist-${writer}-${step % names}`;
		const resource = artist(name);
		const expectedVersion = versions.get(name) ?? "";
		const { version } = await backend.commit([{ op: "put", resource, expectedVersion }]);
		versions.set(name, version);
	});
	await backend.close();
	return measured;
}

async function bare(url: string, writers: number): Promise<Measurement> {
	const client = new EtcdClient({ endpoints: [url] });
	const keys = new Keys(`/bare-${writers}`);
	const versions = new Map<string, bigint>();
	const measured = await measure(writers, async (writer, step) => {
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
const rows: Record<string, object> = {};
for (const writers of [1, 16, 64, 256]) {
	const alternative = await bare(etcd.url, writers);
	const grouped = await throughBackend(etcd.url, writers);
	for (const [name, measured] of [
		["bare transactions", alternative],
		["group commit", grouped],
	] as const) {
		rows[`${writers} writers, ${name}`] = {
			"commits a second": Math.round(measured.perSecond),
			"p50 ms": measured.p50Ms.toFixed(2),
			"p99 ms": measured.p99Ms.toFixed(2),
			"times bare": (measured.perSecond / alternative.perSecond).toFixed(2),
		};
	}
}
await etcd.dispose();
console.table(rows);
