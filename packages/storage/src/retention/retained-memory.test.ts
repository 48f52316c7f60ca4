import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { Exhausted, SnapshotEnded, WatchClosed } from "../errors.ts";
import { defaultStorageLimits, type StorageLimits } from "../limits.ts";
import { createMemoryBackend } from "../memory-backend.ts";
import type { ListQuery } from "../query.ts";
import type { FamilySnapshot, SnapshotOwner } from "../snapshot.ts";
import { StateStore } from "../state-store/state-store.ts";
import type { WatchEvent } from "../watch-event.ts";
import { retainedBudget } from "./retained-memory.ts";

const mebibyte = 1024 * 1024;
const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
const query: ListQuery = { type, tenancy: { partition: "*", namespace: "*" }, namePrefix: "" };

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

function artist(name: string, bytes: number, version = ""): Resource {
	return create(ResourceSchema, {
		id: { name, type, tenancy: {} },
		version,
		data: create(AnySchema, { typeUrl: "t", value: new Uint8Array(bytes) }),
	});
}

function makeStore(limits: Partial<StorageLimits> = {}) {
	const store = new StateStore(systemRuntime, { ...defaultStorageLimits, ...limits });
	/** Writes resources in one revision. */
	function write(bytes: number, ...names: readonly string[]): readonly Resource[] {
		const revision = store.revision + 1;
		const resources = names.map((name) => artist(name, bytes, String(revision)));
		store.apply(
			revision,
			resources.map((resource) => ({ op: "put", resource })),
		);
		return resources;
	}
	function watch(heldBy?: SnapshotOwner): AsyncIterator<WatchEvent, undefined> {
		const { signal } = new AbortController();
		return store.watch(query, { signal, heldBy }, async () => {})[Symbol.asyncIterator]();
	}
	return { store, write, watch };
}

/** Whether the objects can still be reached by anything. */
async function areAlive(refs: readonly WeakRef<Resource>[]): Promise<readonly boolean[]> {
	// What a WeakRef has handed out lives until the iteration of the event loop is over.
	await new Promise((resolve) => setImmediate(resolve));
	collectGarbage();
	return refs.map((ref) => ref.deref() !== undefined);
}

function weak(resources: readonly Resource[]): readonly WeakRef<Resource>[] {
	return resources.map((resource) => new WeakRef(resource));
}

/** Takes an event, of which the caller keeps nothing. */
async function take(watching: AsyncIterator<WatchEvent, undefined>): Promise<void> {
	await watching.next();
}

describe("a stalled watch", () => {
	it("keeps no event alive that the log has dropped, though nobody polls it", async () => {
		const { write, watch } = makeStore({ logBytes: 64 * 1024 });
		const watching = watch();
		await watching.next();
		const refs = [...weak(write(10_000, "a")), ...weak(write(10_000, "b"))];
		await take(watching);
		for (let count = 0; count < 20; count++) {
			write(10_000, "a", "b");
		}
		expect(await areAlive(refs)).toEqual([false, false]);
		await expect(watching.next()).rejects.toThrow(WatchClosed);
		expect(await watching.next()).toEqual({ done: true, value: undefined });
	});

	it("keeps nothing of its snapshot alive when the log has dropped what came after it", async () => {
		const { store, write, watch } = makeStore({ logBytes: 64 * 1024 });
		const refs = weak(write(10_000, "a", "b", "c"));
		const watching = watch();
		expect((await watching.next()).value).toMatchObject({ kind: "upsert" });
		for (let count = 0; count < 20; count++) {
			write(10_000, "a", "b", "c");
		}
		expect(await areAlive(refs)).toEqual([false, false, false]);
		expect(store.retainedBytes).toBeLessThan(64 * 1024 + 10_000);
		await expect(watching.next()).rejects.toThrow(WatchClosed);
	});

	it("retains nothing of a closed storage", async () => {
		const { store, write, watch } = makeStore();
		const refs = weak(write(10_000, "a", "b"));
		const [inSnapshot, following] = [watch(), watch()];
		await inSnapshot.next();
		for (let count = 0; count < 3; count++) {
			await following.next();
		}
		const snapshot = store.snapshot(query, { subject: "alice" });
		write(10_000, "a", "b");
		store.close(new WatchClosed("restored"));
		expect(snapshot.ended).toBe(true);
		expect(store.retainedBytes).toBeLessThan(25_000);
		await expect(inSnapshot.next()).rejects.toThrow("restored");
		await expect(following.next()).rejects.toThrow("restored");
		expect(refs).toHaveLength(2);
	});

	it("is distinguished from one that makes progress, however much is written", async () => {
		const { write, watch } = makeStore({ logBytes: 64 * 1024 });
		const watching = watch();
		await watching.next();
		for (let count = 0; count < 200; count++) {
			write(10_000, "a");
			expect((await watching.next()).value).toMatchObject({ kind: "upsert" });
		}
	});
});

describe("held snapshots", () => {
	it("of rewritten resources retain no more than the budget, and report that they have ended", () => {
		const retainedBytes = 4 * mebibyte;
		const { store, write } = makeStore({ retainedBytes, logBytes: mebibyte });
		const snapshots: FamilySnapshot[] = [];
		for (let count = 0; count < 100; count++) {
			write(256 * 1024, "a", "b");
			snapshots.push(store.snapshot(query, { subject: "alice" }));
			expect(store.retainedBytes).toBeLessThan(retainedBytes + mebibyte);
		}
		const alive = snapshots.filter(({ ended }) => !ended);
		expect(alive.length).toBeGreaterThan(4);
		// The newest ones, whole.
		expect(alive).toEqual(snapshots.slice(-alive.length));
		for (const snapshot of alive) {
			expect([...snapshot.resources()]).toHaveLength(2);
		}
		expect(() => snapshots[0]?.resources()).toThrow(SnapshotEnded);
	});

	it.each(["the first", "the second"])(
		"may be held after a later one, and %s is released first",
		(first) => {
			const { store, write } = makeStore({ logBytes: 64 * 1024 });
			write(10_000, "a");
			const before = store.retainedBytes;
			const earlier = store.snapshot(query);
			write(10_000, "a");
			const later = store.snapshot(query, { subject: "alice" });
			earlier.hold({ subject: "alice" });
			earlier.hold({ subject: "alice" });
			for (let count = 0; count < 20; count++) {
				write(10_000, "a");
			}
			expect([...earlier.resources()].map(({ version }) => version)).toEqual(["1"]);
			expect([...later.resources()].map(({ version }) => version)).toEqual(["2"]);
			const both = store.retainedBytes;
			const [one, other] = first === "the first" ? [earlier, later] : [later, earlier];
			one.release();
			expect(store.retainedBytes).toBeLessThanOrEqual(both);
			expect(other.ended).toBe(false);
			other.release();
			other.hold({ subject: "alice" });
			expect(other.ended).toBe(true);
			expect(store.retainedBytes).toBeLessThan(before + 128 * 1024);
		},
	);

	it("of one subject with too many end before an older one of another subject", () => {
		const { store, write } = makeStore({ retainedBytes: 4 * mebibyte, logBytes: mebibyte });
		write(256 * 1024, "a", "b");
		const quiet = store.snapshot(query, { subject: "quiet" });
		for (let count = 0; count < 100; count++) {
			write(256 * 1024, "a", "b");
			store.snapshot(query, { subject: "greedy" });
		}
		expect(quiet.ended).toBe(false);
		expect([...quiet.resources()].map(({ version }) => version)).toEqual(["1", "1"]);
	});

	it("that nobody holds cost nothing when they are released", async () => {
		const { store, write } = makeStore({ logBytes: 64 * 1024 });
		const refs = weak(write(10_000, "a"));
		const snapshot = store.snapshot(query, { subject: "alice" });
		for (let count = 0; count < 20; count++) {
			write(10_000, "a");
		}
		expect(await areAlive(refs)).toEqual([true]);
		const before = store.retainedBytes;
		snapshot.release();
		expect(store.retainedBytes).toBeLessThan(before - 10_000);
		expect(await areAlive(refs)).toEqual([false]);
	});

	it("and logs leave room for the state under a memory limit, and never fail a writer", async () => {
		const memoryBytes = 200 * mebibyte;
		const limits = { memoryBytes, logBytes: 64 * mebibyte };
		const backend = createMemoryBackend({ limits });
		const held: { readonly ended: boolean }[] = [];
		const versions = new Map<string, string>();
		const put = async (name: string) => {
			const resource = artist(name, mebibyte);
			const expectedVersion = versions.get(name) ?? "";
			const { version } = await backend.commit([{ op: "put", resource, expectedVersion }]);
			versions.set(name, version);
		};
		for (let count = 0; count < 16; count++) {
			await put(`r${count}`);
		}
		// An attacker rewrites and holds; 16 MB each time.
		for (let round = 0; round < 10; round++) {
			held.push(await backend.snapshot(query, { heldBy: { subject: "mallory" } }));
			for (let count = 0; count < 16; count++) {
				await put(`r${count}`);
			}
		}
		expect(held.filter(({ ended }) => !ended).length).toBeLessThan(5);
		// Others can write as much as if nobody held anything: 160 MiB in all.
		for (let count = 16; count < 158; count++) {
			await put(`r${count}`);
		}
		await expect(put("beyond-1").then(() => put("beyond-2"))).rejects.toThrow(Exhausted);
		// What the newest one keeps is in the log as well.
		expect(held.filter(({ ended }) => !ended).length).toBeLessThanOrEqual(1);
	});

	it("have a budget that the state's growth takes away, but for a tenth of the memory limit", () => {
		const limits = (memoryBytes: number) => ({ ...defaultStorageLimits, memoryBytes });
		expect(retainedBudget(limits(Number.POSITIVE_INFINITY), 10 * 1024 * mebibyte)).toBe(
			256 * mebibyte,
		);
		expect(retainedBudget(limits(4096 * mebibyte), 0)).toBe(256 * mebibyte);
		expect(retainedBudget(limits(400 * mebibyte), 0)).toBe(100 * mebibyte);
		expect(retainedBudget(limits(400 * mebibyte), 270 * mebibyte)).toBe(50 * mebibyte);
		expect(retainedBudget(limits(400 * mebibyte), 320 * mebibyte)).toBe(40 * mebibyte);
	});
});

describe("logs of many types", () => {
	it("share half of the budget, and the quiet ones keep theirs", () => {
		const store = new StateStore(systemRuntime, {
			...defaultStorageLimits,
			retainedBytes: 64 * mebibyte,
		});
		const write = (kind: string) => {
			const revision = store.revision + 1;
			const resource = artist("a", mebibyte, String(revision));
			if (resource.id?.type !== undefined) {
				resource.id.type = { ...resource.id.type, kind };
			}
			store.apply(revision, [{ op: "put", resource }]);
		};
		const quiet = store.watch(
			{ ...query, type: { ...type, kind: "Quiet" } },
			{ signal: new AbortController().signal, afterVersion: "0" },
			async () => {},
		);
		write("Quiet");
		write("Quiet");
		for (let count = 0; count < 100; count++) {
			for (const kind of ["A", "B", "C", "D"]) {
				write(kind);
			}
			expect(store.retainedBytes).toBeLessThan(34 * mebibyte);
		}
		expect(store.retainedBytes).toBeGreaterThan(26 * mebibyte);
		return expect(quiet[Symbol.asyncIterator]().next()).resolves.toMatchObject({
			value: { kind: "upsert", version: "1" },
		});
	});
});
