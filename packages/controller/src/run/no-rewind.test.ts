import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import type { ReconcileContext } from "../define/context.ts";
import { defineController } from "../define/controller.ts";
import { requeueNow } from "../define/requeue.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, demo, Label, text } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { TestBench } from "../running-manager.fixture.ts";

/** Counts an album up by one from what the cache says, three times over. */
function counter(seen: string[]) {
	return defineController({
		name: "counter",
		manages: Artist,
		concurrency: 2,
		watches: [watch(Album, { map: mapOwner })],
		async reconcile(context, { id }) {
			const count = Number(context.cache.get(Album, idOf(Album, id.name))?.data.value ?? "0");
			seen.push(`${id.name}:${count}`);
			if (count < 3) {
				const album = { id: idOf(Album, id.name), data: text(`${count + 1}`) };
				await context.write(Album, album);
				return requeueNow;
			}
			return undefined;
		},
	});
}

describe("a request whose own writes are not in the cache yet", () => {
	it("waits for the event, however long the watch stalls, and never acts on an old cache", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)]);
		const stalled = bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		await bench.advance(10_000);
		bench.service.put(demo(Artist, "miles", "changed"));
		await bench.advance(10_000);
		expect(seen).toEqual(["miles:0"]);
		expect(bench.state("counter").run?.requests).toMatchObject({ held: 1, active: 0 });
		expect(bench.state("counter").ownWrites).toMatchObject({ waits: 1, waiting: 1 });

		stalled.open();
		await bench.settle();
		expect(seen).toEqual(["miles:0", "miles:1", "miles:2", "miles:3"]);
		expect(bench.state("counter").ownWrites).toMatchObject({
			waiting: 0,
			waitedMs: 20_000,
			longestWaitMs: 20_000,
		});
	});

	it("does not block other requests or occupy a worker slot while it waits", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)]);
		bench.service.shut("live demo.v1.Album");
		for (const name of ["a", "b", "c", "d"]) {
			bench.service.put(demo(Artist, name));
		}
		await bench.settle();
		expect(seen).toEqual(["a:0", "b:0", "c:0", "d:0"]);
	});

	it("waits for deletions as well", async () => {
		await using bench = new TestBench();
		const seen: boolean[] = [];
		const controller = defineController({
			name: "deleter",
			manages: Artist,
			watches: [watch(Album, { map: mapOwner })],
			async reconcile(context) {
				const album = idOf(Album, "blue");
				const isThere = context.cache.get(Album, album) !== undefined;
				seen.push(isThere);
				if (isThere) {
					await context.delete(album);
					return requeueNow;
				}
				return undefined;
			},
		});
		bench.service.put(demo(Album, "blue"));
		await bench.start([controller]);
		const stalled = bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(seen).toEqual([true]);
		stalled.open();
		await bench.settle();
		expect(seen).toEqual([true, false]);
	});

	it("waits for a write that it did not await", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		const controller = defineController({
			name: "careless",
			manages: Artist,
			watches: [watch(Album, { map: mapOwner })],
			async reconcile(context) {
				const album = idOf(Album, "blue");
				seen.push(context.cache.get(Album, album)?.data.value ?? "none");
				if (seen.length === 1) {
					context.write(Album, { id: album, data: text("written") }).catch(() => {});
					return requeueNow;
				}
				return undefined;
			},
		});
		await bench.start([controller]);
		const unacknowledged = bench.service.shut("ack Write");
		const stalled = bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(bench.state("careless").run?.requests.active).toBe(1);
		unacknowledged.open();
		await bench.settle();
		expect(bench.state("careless").run?.requests.held).toBe(1);
		stalled.open();
		await bench.settle();
		expect(seen).toEqual(["none", "written"]);
	});

	it("does not wait for writes to types that are not cached", async () => {
		await using bench = new TestBench();
		let calls = 0;
		const controller = defineController({
			name: "elsewhere",
			manages: Artist,
			async reconcile(context) {
				calls += 1;
				await context.write(Label, { id: idOf(Label, "columbia") });
				return calls < 3 ? requeueNow : undefined;
			},
		});
		await bench.start([controller]);
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(calls).toBe(3);
		expect(bench.state("elsewhere").ownWrites.noted).toBe(0);
	});

	it("continues when a bookmark shows that there is no event to wait for", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)]);
		const stalled = bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		bench.service.breakWatches("demo.v1.Nothing");
		bench.service.bookmark(Album.type);
		stalled.open();
		await bench.settle();
		expect(seen.at(-1)).toBe("miles:3");
	});

	it("restarts the run when the event does not come within the limit", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)], { limits: { ownWritesMs: 30_000 } });
		bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		await bench.advance(29_999);
		expect(bench.state("counter").restarts).toBe(0);
		await bench.advance(1);
		expect(bench.state("counter").restarts).toBe(1);
		expect(bench.state("counter").lastError?.message).toMatch(
			/has not seen version \d+ of demo.Album, written for demo.Artist\/default\/default\/miles/,
		);
		expect(seen).toEqual(["miles:0", "miles:1"]);
	});

	it("does not keep a stop waiting", async () => {
		const bench = new TestBench();
		await bench.start([counter([])]);
		bench.service.shut("live demo.v1.Album");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(bench.state("counter").ownWrites.waiting).toBe(1);
		await bench.stop();
		expect(bench.clock.nextTimerMs()).toBeUndefined();
	});

	it("waits for a write that outlives its run", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)]);
		const unacknowledged = bench.service.shut("ack Write");
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(seen).toEqual(["miles:0"]);
		const unprimed = bench.service.shut("snapshot demo.v1.Artist");
		bench.service.breakWatches("demo.v1.Album");
		await bench.advance(5_000);
		const stalled = bench.service.shut("live demo.v1.Album");
		unprimed.open();
		await bench.advance(1_000);
		expect(bench.state("counter").phase).toBe("running");
		expect(bench.state("counter").orphaned).toEqual(["demo.Artist/default/default/miles"]);
		expect(seen).toEqual(["miles:0"]);
		unacknowledged.open();
		stalled.open();
		await bench.settle();
		expect(seen).toEqual(["miles:0", "miles:1", "miles:2", "miles:3"]);
		expect(bench.state("counter").orphaned).toEqual([]);
	});

	it("does not wait if the cache keeps up", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		await bench.start([counter(seen)]);
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		expect(seen.at(-1)).toBe("miles:3");
		expect(bench.state("counter").ownWrites.waitedMs).toBe(0);
	});
});

describe("the client of a reconcile", () => {
	it("refuses writes once the reconcile has ended", async () => {
		await using bench = new TestBench();
		let kept: ReconcileContext | undefined;
		const controller = defineController({
			name: "leaky",
			manages: Artist,
			async reconcile(context) {
				kept = context;
			},
		});
		await bench.start([controller]);
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		await expect(kept?.write(Album, { id: idOf(Album, "late") })).rejects.toThrow(
			new ConnectError(
				"write refused: the function that started it has ended; await every write",
				Code.FailedPrecondition,
			),
		);
		expect(bench.service.stored(idOf(Album, "late"))).toBeUndefined();
	});
});
