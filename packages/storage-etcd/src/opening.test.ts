/** What becomes of an opening whose state is loaded at an earlier revision, if something happens before it is up to date. */
import { create } from "@bufbuild/protobuf";
import { type Logger, silentLogger } from "@plinth/runtime";
import { StateTooLarge, StorageUnavailable } from "@plinth/storage";
import { artist, idOfArtist, listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { createEtcdBackend } from "./etcd-backend.ts";
import { etcdctl } from "./etcd-process.fixture.ts";
import { TxnRequestSchema } from "./gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "./keys.ts";
import { UnrecognizedData } from "./state/decode-resource.ts";
import { useEtcd } from "./use-etcd.fixture.ts";

/** Calls a function when the storage has been loaded, before its watch begins. */
function onceLoaded(loaded: () => void): Logger {
	let isFirst = true;
	return {
		...silentLogger,
		info: (_, message) => {
			if (message === "storage loaded" && isFirst) {
				isFirst = false;
				loaded();
			}
		},
	};
}

describeWith("etcd")("opening a storage in etcd", () => {
	const etcd = useEtcd();

	const put = (key: Uint8Array) => {
		const value = { key, value: Buffer.from("nonsense") };
		return etcd
			.client()
			.transaction(
				create(TxnRequestSchema, { success: [{ request: { case: "requestPut", value } }] }),
			);
	};

	/** Compacts all revisions before the newest transaction. */
	const compaction = async (prefix: string) => {
		const { kvs } = await etcd.client().range({ key: new Keys(prefix).head });
		return () => etcdctl("--endpoints", etcd.url, "compact", String(kvs[0]?.modRevision));
	};

	it("fails if a key below the resources is not that of a resource, as long as it is there", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const first = await open();
		await first.commit([putArtist("a")]);
		await put(Buffer.from(`${prefix}/resources/garbage`));
		await first.commit([putArtist("b")]);
		await expect(open()).rejects.toThrow(UnrecognizedData);
		await (await compaction(prefix))();
		await expect(open()).rejects.toThrow(UnrecognizedData);
	});

	it("fails if etcd is compacted meanwhile and has a value of others", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const first = await open();
		await first.commit([putArtist("a")]);
		await put(Buffer.from(new Keys(prefix).resource(artist("b").id)));
		await first.commit([putArtist("c")]);
		const compact = await compaction(prefix);
		await expect(open({ logger: onceLoaded(compact) })).rejects.toThrow(UnrecognizedData);
	});

	it("fails if etcd is compacted meanwhile and the state is too large", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const first = await open();
		for (let index = 0; index < 50; index += 1) {
			await first.commit([putArtist(`artist-${index}`, "x".repeat(1_000))]);
		}
		const compact = await compaction(prefix);
		await expect(
			open({ logger: onceLoaded(compact), limits: { memoryBytes: 20_000 } }),
		).rejects.toThrow(StateTooLarge);
	});

	it("fails if etcd can't be reached any more", async () => {
		const { prefix, backend: open } = etcd.cluster();
		const first = await open();
		for (const name of ["a", "b", "c"]) {
			await first.commit([putArtist(name)]);
		}
		const way = await etcd.proxy();
		await expect(
			createEtcdBackend({
				...{ endpoints: [way.url], prefix, requestTimeoutMs: 1_000 },
				logger: onceLoaded(() => way.cut()),
			}),
		).rejects.toThrow(StorageUnavailable);
	});

	it("loads the newest state if the changes since an earlier one are too large", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		let version = "";
		for (let index = 0; index < 80; index += 1) {
			({ version } = await first.commit([
				putArtist("a", `${index} ${"x".repeat(900_000)}`, version),
			]));
		}
		await first.commit([putArtist("a", "small", version)]);
		const messages: string[] = [];
		const second = await open({
			logger: { ...silentLogger, info: (_, message) => messages.push(message) },
		});
		expect(messages).toContain("loading the newest state of the storage instead of a recent one");
		expect(await listArtists(second)).toEqual(["a=small"]);
	});

	it("counts no write of the time before, and does not know when it was", async () => {
		const { backend: open } = etcd.cluster();
		const first = await open();
		await first.commit([putArtist("a", "1")]);
		const { version } = await first.commit([putArtist("b", "1")]);
		const second = await open();
		const signal = new AbortController().signal;
		const { versions } = await second.history(idOfArtist("b"), { signal });
		expect(versions).toMatchObject([{ change: "created", version, atMs: undefined }]);
		const writes = () => [...second.statistics().types.values()].map((type) => type.writes);
		expect(writes()).toEqual([0]);
		await second.commit([putArtist("c", "1")]);
		expect(writes()).toEqual([1]);
	});
});
