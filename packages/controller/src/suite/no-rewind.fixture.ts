import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { expect } from "vitest";
import type { ReconcileContext } from "../define/context.ts";
import { defineController } from "../define/controller.ts";
import { requeueNow } from "../define/requeue.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo, Label, text } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { sameNameAs } from "../mappers/same-name.ts";
import { compareVersions } from "../run/compare-versions.ts";
import { type Bench, type Suite, scenario } from "./scenario.fixture.ts";

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
				const album = { id: idOf(Album, id.name), data: text(Album, `${count + 1}`) };
				await context.write(Album, album);
				return requeueNow;
			}
			return undefined;
		},
	});
}

/** Starts a counter that has counted once and does not see that: no event of an album arrives until `stalled` opens. */
async function startUnseenCount(bench: Bench) {
	const seen: string[] = [];
	await bench.start([counter(seen)]);
	const stalled = bench.service.shut("live demo.v1.Album");
	await bench.service.put(demo(Artist, "miles"));
	await bench.settle();
	return { seen, stalled };
}

/** A key waits for what was written for it. */
export const noRewind: Suite = {
	title: "a request whose own writes are not in the cache yet",
	scenarios: [
		scenario(
			"waits for the event, however long the watch stalls, and never acts on an old cache",
			async (bench) => {
				const { seen, stalled } = await startUnseenCount(bench);
				await bench.advance(10_000);
				await bench.service.put(demo(Artist, "miles", "changed"));
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
			},
		),

		scenario(
			"does not block other requests or occupy a worker slot while it waits",
			async (bench) => {
				const seen: string[] = [];
				await bench.start([counter(seen)]);
				bench.service.shut("live demo.v1.Album");
				for (const name of ["a", "b", "c", "d"]) {
					await bench.service.put(demo(Artist, name));
				}
				await bench.settle();
				expect(seen).toEqual(["a:0", "b:0", "c:0", "d:0"]);
			},
		),

		scenario("waits for deletions as well", async (bench) => {
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
			await bench.service.put(demo(Album, "blue"));
			await bench.start([controller]);
			const stalled = bench.service.shut("live demo.v1.Album");
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(seen).toEqual([true]);
			stalled.open();
			await bench.settle();
			expect(seen).toEqual([true, false]);
		}),

		scenario("waits for a write that it did not await", async (bench) => {
			const seen: string[] = [];
			const controller = defineController({
				name: "careless",
				manages: Artist,
				watches: [watch(Album, { map: mapOwner })],
				async reconcile(context) {
					const album = idOf(Album, "blue");
					seen.push(context.cache.get(Album, album)?.data.value ?? "none");
					if (seen.length === 1) {
						context.write(Album, { id: album, data: text(Album, "written") }).catch(() => {});
						return requeueNow;
					}
					return undefined;
				},
			});
			await bench.start([controller]);
			const unacknowledged = bench.service.shut("ack Write");
			const stalled = bench.service.shut("live demo.v1.Album");
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(bench.state("careless").run?.requests.active).toBe(1);
			unacknowledged.open();
			await bench.settle();
			expect(bench.state("careless").run?.requests.held).toBe(1);
			stalled.open();
			await bench.settle();
			expect(seen).toEqual(["none", "written"]);
		}),

		scenario("does not wait for writes to types that are not cached", async (bench) => {
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
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(calls).toBe(3);
			expect(bench.state("elsewhere").ownWrites.noted).toBe(0);
		}),

		scenario(
			"continues when a bookmark shows that there is no event to wait for",
			async (bench) => {
				const { seen, stalled } = await startUnseenCount(bench);
				bench.service.breakWatches("demo.v1.Nothing");
				bench.service.bookmark(Album.type);
				stalled.open();
				await bench.settle();
				expect(seen.at(-1)).toBe("miles:3");
			},
		),

		scenario("restarts the run when the event does not come within the limit", async (bench) => {
			const { seen } = await startUnseenCount(bench);
			await bench.advance(29_999);
			expect(bench.state("counter").restarts).toBe(0);
			await bench.advance(1);
			expect(bench.state("counter").restarts).toBe(1);
			expect(bench.state("counter").lastError?.message).toMatch(
				/has not seen version \d+ of demo.Album, written for demo.Artist\/default\/default\/miles/,
			);
			expect(seen).toEqual(["miles:0", "miles:1"]);
		}),

		scenario("does not keep a stop waiting", async (bench) => {
			await bench.start([counter([])]);
			bench.service.shut("live demo.v1.Album");
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(bench.state("counter").ownWrites.waiting).toBe(1);
			await bench.stop();
			expect(bench.clock.nextTimerMs()).toBeUndefined();
		}),

		scenario("waits for a write that outlives its run", async (bench) => {
			const seen: string[] = [];
			await bench.start([counter(seen)]);
			const unacknowledged = bench.service.shut("ack Write");
			await bench.service.put(demo(Artist, "miles"));
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
		}),

		scenario("sees no resource in an older state than it has seen", async (bench) => {
			const seen = new Map<string, string>();
			const rewinds: string[] = [];
			const look = (type: DemoType, context: ReconcileContext) => {
				for (const { resource } of context.cache.iterate(type)) {
					const { id, version } = resource;
					const before = seen.get(id?.uid ?? "") ?? "0";
					if (compareVersions(version, before) < 0) {
						rewinds.push(`${id?.name}: ${version} after ${before}`);
					}
					seen.set(id?.uid ?? "", version);
				}
			};
			const controller = defineController({
				name: "observer",
				manages: Artist,
				watches: [watch(Album, { map: sameNameAs(Artist) })],
				async reconcile(context, { id }) {
					look(Artist, context);
					look(Album, context);
					const count = Number(context.cache.get(Artist, id)?.data.value);
					if (count % 3 === 0) {
						await context.write(Artist, { id, data: text(Artist, `${count + 1}`) });
					}
				},
			});
			await bench.start([controller]);
			let newest: Resource | undefined;
			for (let count = 0; count < 30; count += 3) {
				for (const name of ["miles", "nina"]) {
					await bench.service.put(demo(Artist, name, `${count}`));
					newest = await bench.service.put(demo(Album, name, `${count}`));
				}
				if (count % 2 === 0) {
					await bench.settle();
				}
			}
			await bench.settle();
			expect(rewinds).toEqual([]);
			expect(seen.size).toBe(4);
			expect(seen.get(newest?.id?.uid ?? "")).toBe(newest?.version);
			const miles = await bench.service.stored(idOf(Artist, "miles"));
			expect(seen.get(miles?.id?.uid ?? "")).toBe(miles?.version);
		}),

		scenario("does not wait if the cache keeps up", async (bench) => {
			const seen: string[] = [];
			await bench.start([counter(seen)]);
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(seen.at(-1)).toBe("miles:3");
			expect(bench.state("counter").ownWrites.waitedMs).toBe(0);
		}),
	],
};

/** What the client of a reconcile refuses. */
export const clientOfReconcile: Suite = {
	title: "the client of a reconcile",
	scenarios: [
		scenario("refuses writes once the reconcile has ended", async (bench) => {
			let kept: ReconcileContext | undefined;
			const controller = defineController({
				name: "leaky",
				manages: Artist,
				async reconcile(context) {
					kept = context;
				},
			});
			await bench.start([controller]);
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			await expect(kept?.write(Album, { id: idOf(Album, "late") })).rejects.toThrow(
				new ConnectError(
					"write refused: the function that started it has ended; await every write",
					Code.FailedPrecondition,
				),
			);
			expect(await bench.service.stored(idOf(Album, "late"))).toBeUndefined();
		}),
	],
};
