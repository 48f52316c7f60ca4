// Commits a second and their latency, by how many write at once, against bare transactions of etcd:
// one per call, through the same client with the same concurrency, in the same run.
import { randomUUID } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import type { Load } from "@plinth/bench";
import { ResourceSchema } from "@plinth/proto";
import { compareWithGroupCommit, loadOfCommits, loadOfWriters } from "@plinth/storage/bench";
import { EtcdClient } from "../src/client/etcd-client.ts";
import { EtcdProcess } from "../src/etcd-process.fixture.ts";
import { Compare_CompareTarget, TxnRequestSchema } from "../src/gen/etcdserverpb/rpc_pb.ts";
import { createEtcdBackend } from "../src/index.ts";
import { Keys } from "../src/keys.ts";

async function throughBackend(url: string, writers: number): Promise<Load> {
	const prefix = `/${randomUUID()}`;
	return loadOfCommits(await createEtcdBackend({ endpoints: [url], prefix }), writers);
}

async function bare(url: string, writers: number): Promise<Load> {
	const client = new EtcdClient({ endpoints: [url] });
	const keys = new Keys(`/${randomUUID()}`);
	const versions = new Map<string, bigint>();
	const measured = await loadOfWriters(writers, async (resource) => {
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
await compareWithGroupCommit(
	"Time per commit of all writers together",
	(writers) => throughBackend(etcd.url, writers),
	["bare transactions", (writers) => bare(etcd.url, writers)],
);
await etcd.dispose();
