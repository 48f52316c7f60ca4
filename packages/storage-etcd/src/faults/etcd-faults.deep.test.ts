import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type StorageBackend, StorageUnavailable } from "@plinth/storage";
import { ArtistWatch, idOfArtist, listArtists, putArtist } from "@plinth/storage/testing";
import { describeWith } from "@plinth/test-support";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createEtcdBackend } from "../etcd-backend.ts";
import { EtcdProcess } from "../etcd-process.fixture.ts";

const requestTimeoutMs = 3_000;

describeWith("etcd")("the etcd backend, while etcd is away", () => {
	let etcd: EtcdProcess;
	const backends: StorageBackend[] = [];
	beforeAll(async () => {
		etcd = await EtcdProcess.start();
	});
	afterEach(async () => {
		etcd.resume();
		await Promise.all(backends.splice(0).map((backend) => backend.close()));
	});
	afterAll(() => etcd.dispose());

	async function open(prefix = `/${randomUUID()}`): Promise<StorageBackend> {
		const backend = await createEtcdBackend({ endpoints: [etcd.url], prefix, requestTimeoutMs });
		backends.push(backend);
		return backend;
	}

	/** Commits until one goes through. */
	async function commitSoon(backend: StorageBackend, name: string): Promise<void> {
		for (;;) {
			try {
				await backend.commit([putArtist(name)]);
				return;
			} catch (error) {
				if (!(error instanceof StorageUnavailable)) {
					throw error;
				}
			}
		}
	}

	it("serves eventual reads, fails the rest in time, and recovers after a kill", async () => {
		const backend = await open();
		const watch = new ArtistWatch(backend);
		await watch.snapshot();
		await backend.commit([putArtist("before")]);
		await etcd.kill();
		await expect(backend.commit([putArtist("a")])).rejects.toThrow(StorageUnavailable);
		const strong = { consistency: "strong" } as const;
		await expect(backend.read(idOfArtist("before"), strong)).rejects.toThrow(StorageUnavailable);
		await expect(backend.catchUp(new AbortController().signal)).rejects.toThrow(StorageUnavailable);
		expect(await listArtists(backend)).toEqual(["before="]);
		await etcd.restart();
		await commitSoon(backend, "after");
		expect(await watch.next()).toBe("upsert before=");
		expect(await watch.next()).toBe("upsert after=");
		expect((await backend.read(idOfArtist("before"), strong)).id?.name).toBe("before");
		watch.end();
	});

	it("does not say that a commit failed which a stopped etcd may still take", async () => {
		const prefix = `/${randomUUID()}`;
		const backend = await open(prefix);
		const { version } = await backend.commit([putArtist("a", "1")]);
		const watch = new ArtistWatch(backend, version);
		await etcd.suspend();
		await expect(backend.commit([putArtist("a", "2", version)])).rejects.toThrow(
			StorageUnavailable,
		);
		expect(await listArtists(backend)).toEqual(["a=1"]);
		etcd.resume();
		await commitSoon(backend, "b");
		const sent = [await watch.next()];
		while (sent.at(-1) !== "upsert b=") {
			sent.push(await watch.next());
		}
		// Whether it was applied depends on etcd, and perhaps only after the next one; but all watches must receive the same.
		const [first] = await listArtists(backend);
		const landed = first === "a=2";
		if (landed && !sent.includes("upsert a=2")) {
			sent.push(await watch.next());
		}
		expect(sent.toSorted()).toEqual(landed ? ["upsert a=2", "upsert b="] : ["upsert b="]);
		const another = await open(prefix);
		await expect
			.poll(async () => [await listArtists(another), await listArtists(backend)])
			.toSatisfy(([one, other]) => isDeepStrictEqual(one, other));
		watch.end();
	});

	it("does not accept an old version after etcd was wiped", async () => {
		const backend = await open();
		for (let version = "", round = 0; round < 10; round++) {
			({ version } = await backend.commit([putArtist("a", String(round), version)]));
		}
		await etcd.forget();
		await etcd.restart();
		const strong = { consistency: "strong" } as const;
		await expect(backend.read(idOfArtist("a"), strong)).rejects.toThrow("lost history");
		await expect(backend.commit([putArtist("b")])).rejects.toThrow("lost history");
		expect(await listArtists(backend)).toEqual(["a=9"]);
	});

	it("closes in time while etcd is away", async () => {
		const backend = await open();
		await etcd.kill();
		const commit = backend.commit([putArtist("a")]);
		const closing = backend.close();
		await expect(commit).rejects.toThrow(StorageUnavailable);
		await closing;
		await etcd.restart();
	});
});
