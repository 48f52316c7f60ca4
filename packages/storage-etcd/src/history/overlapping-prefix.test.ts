import { create } from "@bufbuild/protobuf";
import { silentLogger } from "@plinth/runtime";
import { listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { operation } from "../client/conditions.ts";
import { createEtcdBackend } from "../etcd-backend.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "../keys.ts";
import { useEtcd } from "../use-etcd.fixture.ts";
import { OverlappingPrefix } from "./overlapping-prefix.ts";

describeWith("etcd")("the prefix of a store", () => {
	const etcd = useEtcd();

	it("is refused for a new store below or above another one", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const backend = await open({ prefix: `${prefix}/b/c` });
		await backend.commit([putArtist("a")]);
		for (const [refused, text] of [
			[`${prefix}/b/c/d/e`, "lies below"],
			[`${prefix}/b/c/resources`, "lies below"],
			[`${prefix}/b`, "lies above"],
			[prefix, "lies above"],
		] as const) {
			const opening = createEtcdBackend({ endpoints: [etcd.url], prefix: refused });
			await expect(opening).rejects.toThrow(OverlappingPrefix);
			await expect(opening).rejects.toThrow(
				`the prefix "${refused}" ${text} "${prefix}/b/c", the prefix of another store`,
			);
		}
		const beside = await open({ prefix: `${prefix}/b/c-d` });
		expect(await listArtists(beside)).toEqual([]);
	});

	it("is accepted for a new store beside keys of other programs that are named like those of a store", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const client = etcd.client();
		for (const name of ["identity", "a/identity", "a/b/c/identity", "a/b/c/head"]) {
			const value = { key: Buffer.from(`${prefix}/${name}`), value: Buffer.from('{"port":8080}') };
			await client.transaction(
				create(TxnRequestSchema, { success: [operation("requestPut", value)] }),
			);
		}
		const backend = await open({ prefix: `${prefix}/a/b` });
		expect(await listArtists(backend)).toEqual([]);
	});

	it("is accepted for a store that exists, and what another one below it writes is no fault of its data", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const first = await open();
		const client = etcd.client();
		const below = new Keys(`${prefix}/n`);
		for (const key of [below.identity, below.head, below.commit(1), below.head]) {
			const value = { key, value: Buffer.from("written by another store") };
			await client.transaction(
				create(TxnRequestSchema, { success: [operation("requestPut", value)] }),
			);
			await first.commit([putArtist(`artist-${(await listArtists(first)).length}`)]);
		}
		const messages: string[] = [];
		const log = (_: object, message: string) => messages.push(message);
		const second = await open({ logger: { ...silentLogger, info: log, error: log } });
		expect(messages).toEqual(["storage loaded"]);
		expect(await listArtists(second)).toEqual(await listArtists(first));
	});
});
