import { Code, ConnectError } from "@connectrpc/connect";
import { referenceIndex } from "@plinth/cache";
import { idOf } from "@plinth/resource";
import { expect } from "vitest";
import type { Change } from "../define/change.ts";
import { type ControllerOptions, defineController } from "../define/controller.ts";
import { watch, watchEvents } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo, Label } from "../demo-types.fixture.ts";
import { cacheList } from "../mappers/cache-lookup.ts";
import { mapOwner } from "../mappers/owner.ts";
import { compareVersions } from "../run/compare-versions.ts";
import { type Bench, type Suite, scenario } from "./scenario.fixture.ts";

const albumsByArtist = referenceIndex("artist", Album, ({ resource }) => resource.owner);

/** An artist controller that watches albums and labels, and writes down what it is called for. */
function recorder(more: Partial<ControllerOptions<DemoType["schema"], Record<never, never>>> = {}) {
	const reconciled: string[] = [];
	const mapped: string[] = [];
	const controller = defineController({
		name: "artist",
		manages: Artist,
		indexes: [albumsByArtist],
		watches: [
			watch(Album, {
				map: (context, changed) => {
					mapped.push(`${changed.resource.id?.name}@${changed.data.value}`);
					return mapOwner(context, changed);
				},
			}),
			watch(Label, { map: cacheList(Artist, (id) => idOf(Artist, "", id.tenancy)) }),
		],
		async reconcile(context, { id }) {
			const albums = context.cache.list(albumsByArtist, id).map(({ data }) => data.value);
			reconciled.push(`${id.name}:${albums.join(",")}`);
		},
		...more,
	});
	return { controller, reconciled, mapped };
}

async function fill({ service }: Bench) {
	const miles = await service.put(demo(Artist, "miles"));
	await service.put(demo(Artist, "nina"));
	await service.put(demo(Album, "blue", "Kind of Blue", { owner: miles.id! }));
	return { miles };
}

/** What holds before a controller reconciles, and when it starts over. */
export const priming: Suite = {
	title: "the start of a run",
	scenarios: [
		scenario(
			"runs no mapper and no reconciler before the last of the priming watches has ended",
			async (bench) => {
				await fill(bench);
				const slow = bench.service.shut("snapshot demo.v1.Label");
				const { controller, reconciled, mapped } = recorder();
				await bench.start([controller]);
				await bench.advance(60_000);

				expect(slow.waiting).toBe(1);
				expect(bench.service.watches.map(({ type }) => type)).toEqual([
					"demo.v1.Artist",
					"demo.v1.Album",
					"demo.v1.Label",
				]);
				expect(bench.service.watches.map(({ ended }) => ended)).toEqual([true, true, false]);
				expect(bench.state("artist").phase).toBe("priming");
				await bench.service.put(demo(Artist, "while-priming"));
				await bench.advance(60_000);
				expect(mapped).toEqual([]);
				expect(reconciled).toEqual([]);
				expect(bench.state("artist").run?.requests).toMatchObject({ live: 0, background: 0 });

				slow.open();
				await bench.settle();
				expect(bench.state("artist").phase).toBe("running");
				expect(mapped).toEqual(["blue@Kind of Blue"]);
				expect(reconciled.sort()).toEqual(["miles:Kind of Blue", "nina:", "while-priming:"]);
			},
		),

		scenario(
			"primes with consistent snapshots and resumes each watch after its snapshot",
			async (bench) => {
				await fill(bench);
				const { controller } = recorder();
				const slow = bench.service.shut("snapshot demo.v1.Label");
				await bench.start([controller]);
				const late = await bench.service.put(demo(Artist, "late"));
				slow.open();
				await bench.settle();
				const { watches } = bench.service;
				const opened = watches.map(({ type, afterVersion, consistent }) => [
					type,
					afterVersion,
					consistent,
				]);
				const versions = watches.slice(0, 3).map(({ snapshotVersion }) => snapshotVersion ?? "");
				// Only the slow one has begun after the late write.
				expect(versions.map((each) => compareVersions(each, late.version) >= 0)).toEqual([
					...[false, false, true],
				]);
				expect(opened).toEqual([
					["demo.v1.Artist", "", true],
					["demo.v1.Album", "", true],
					["demo.v1.Label", "", true],
					["demo.v1.Artist", versions[0], false],
					["demo.v1.Album", versions[1], false],
					["demo.v1.Label", versions[2], false],
				]);
			},
		),

		scenario(
			"initializes before it opens a watch, and not again until the next start",
			async (bench) => {
				let initialized = 0;
				const { controller } = recorder({
					initialize: async (context) => {
						initialized += 1;
						expect(bench.service.watches).toEqual([]);
						await context.write(Artist, { id: idOf(Artist, "first") });
					},
				});
				await bench.start([controller]);
				expect(initialized).toBe(1);
				expect(bench.state("artist").run?.cached[0]?.size).toBe(1);
			},
		),

		scenario("treats a failing initializer as a failed start", async (bench) => {
			let attempts = 0;
			const { controller } = recorder({
				initialize: () => {
					attempts += 1;
					if (attempts < 3) {
						throw new Error("not yet");
					}
				},
			});
			await bench.start([controller]);
			expect(bench.state("artist")).toMatchObject({
				phase: "backing-off",
				restarts: 1,
				lastError: { message: "not yet" },
			});
			await bench.advance(5_000);
			expect(attempts).toBe(3);
			expect(bench.state("artist").phase).toBe("running");
		}),

		scenario("removes what was deleted between priming and running", async (bench) => {
			const { miles } = await fill(bench);
			const slow = bench.service.shut("snapshot demo.v1.Label");
			const { controller, reconciled } = recorder();
			await bench.start([controller]);
			await bench.service.remove(miles.id!);
			await bench.service.remove(idOf(Album, "blue"));
			slow.open();
			await bench.settle();
			expect(bench.state("artist").run?.cached.map(({ size }) => size)).toEqual([1, 0, 0]);
			expect(reconciled.filter((line) => line.startsWith("miles")).at(-1)).toBe("miles:");
		}),

		scenario(
			"starts from a new snapshot if the server can't resume, and removes resources that it lacks",
			async (bench) => {
				const { miles } = await fill(bench);
				const slow = bench.service.shut("snapshot demo.v1.Label");
				const { controller, reconciled, mapped } = recorder();
				await bench.start([controller]);
				for (const type of ["demo.v1.Artist", "demo.v1.Album"]) {
					bench.service.failNext(`resume ${type}`, new ConnectError("compacted", Code.OutOfRange));
				}
				await bench.service.remove(idOf(Album, "blue"));
				await bench.service.remove(idOf(Artist, "nina"));
				await bench.service.put(demo(Artist, "late"));
				await bench.service.put(demo(Album, "sketches", "Sketches of Spain", { owner: miles.id! }));
				slow.open();
				await bench.settle();

				expect(bench.state("artist").restarts).toBe(0);
				expect(bench.state("artist").run?.cached.map(({ size }) => size)).toEqual([2, 1, 0]);
				expect(mapped).toContain("blue@Kind of Blue");
				expect(mapped).toContain("sketches@Sketches of Spain");
				expect(reconciled).toContain("late:");
				expect(reconciled.filter((line) => line.startsWith("nina"))).not.toEqual([]);
				expect(reconciled.filter((line) => line.startsWith("miles")).at(-1)).toBe(
					"miles:Sketches of Spain",
				);
				const artistWatches = bench.service.watches.filter(({ type }) => type === "demo.v1.Artist");
				expect(
					artistWatches.map(({ afterVersion, consistent }) => [afterVersion, consistent]),
				).toEqual([
					["", true],
					[artistWatches[0]?.snapshotVersion, false],
					["", true],
				]);

				await bench.service.put(demo(Artist, "later"));
				await bench.settle();
				expect(reconciled.at(-1)).toBe("later:");
			},
		),

		scenario("queues everything cached once", async (bench) => {
			await fill(bench);
			const { controller, reconciled } = recorder({
				watches: [],
				indexes: [],
				reconcile: async (_, { id }) => {
					reconciled.push(id.name);
				},
			});
			await bench.start([controller]);
			expect(reconciled).toEqual(["miles", "nina"]);
		}),

		scenario("starts over from an empty cache when a watch fails", async (bench) => {
			await fill(bench);
			const { controller, reconciled } = recorder();
			await bench.start([controller]);
			await bench.advance(10_000);
			reconciled.length = 0;
			bench.service.breakWatches("demo.v1.Album");
			await bench.settle();
			expect(bench.state("artist")).toMatchObject({ phase: "running", restarts: 1 });
			expect(reconciled.sort()).toEqual(["miles:Kind of Blue", "nina:"]);
		}),

		scenario("ends the run when an insert fails, and names the resource", async (bench) => {
			const picky = referenceIndex("picky", Album, ({ data }) => {
				if (data.value === "bad") {
					throw new Error("bad album");
				}
				return undefined;
			});
			const { controller } = recorder({ indexes: [albumsByArtist, picky] });
			await bench.start([controller]);
			expect(bench.state("artist").phase).toBe("running");
			await bench.service.put(demo(Album, "worst", "bad"));
			await bench.settle();
			expect(bench.state("artist").restarts).toBeGreaterThan(0);
			expect(bench.state("artist").lastError?.message).toContain("picky");
			await bench.service.put(demo(Album, "worst", "good"));
			await bench.advance(5_000);
			expect(bench.state("artist").phase).toBe("running");
		}),

		scenario("skips an event of an unknown kind with a warning", async (bench) => {
			const { controller, reconciled } = recorder();
			await bench.start([controller]);
			bench.service.sendUnknown(Artist.type);
			await bench.service.put(demo(Artist, "miles"));
			await bench.settle();
			expect(bench.messages("warn")).toEqual(["skipped a watch event of an unknown kind"]);
			expect(bench.state("artist").restarts).toBe(0);
			expect(reconciled).toEqual(["miles:"]);
		}),

		scenario(
			"opens custom watches only once it runs, and outlives their end but not their error",
			async (bench) => {
				await fill(bench);
				const { promise: failing, reject: fail } = Promise.withResolvers<never>();
				let opened = 0;
				const events = watchEvents("charts", {
					async *source() {
						opened += 1;
						yield { key: "a", event: "nina" };
						if (opened === 1) {
							await failing;
						}
					},
					map: (_, name: string) => [idOf(Artist, name)],
				});
				const slow = bench.service.shut("snapshot demo.v1.Artist");
				const { controller, reconciled } = recorder({
					indexes: [],
					watches: [events],
					reconcile: async (_, { id }) => {
						reconciled.push(id.name);
					},
				});
				await bench.start([controller]);
				expect(opened).toBe(0);
				slow.open();
				await bench.settle();
				expect(opened).toBe(1);
				expect(reconciled).toContain("nina");
				fail(new Error("charts are gone"));
				await bench.settle();
				expect(bench.state("artist").lastError?.message).toBe("charts are gone");
				await bench.advance(5_000);
				expect(opened).toBe(2);
				expect(bench.state("artist")).toMatchObject({ phase: "running", restarts: 1 });
			},
		),

		scenario("puts an event into the cache before anything is called for it", async (bench) => {
			const seen: string[] = [];
			const { controller } = recorder({
				async reconcile(context, { id }) {
					seen.push(context.cache.get(Artist, id)?.data.value ?? "gone");
				},
			});
			await bench.start([controller]);
			await bench.service.put(demo(Artist, "miles", "trumpet"));
			await bench.settle();
			await bench.service.remove(idOf(Artist, "miles"));
			await bench.settle();
			expect(seen).toEqual(["trumpet", "gone"]);
		}),

		scenario("asks `when` which changes queue anything, and caches all of them", async (bench) => {
			const changes: Change["kind"][] = [];
			const { controller, reconciled } = recorder({
				when: (change) => {
					changes.push(change.kind);
					return change.kind !== "updated";
				},
			});
			await bench.start([controller]);
			await bench.service.put(demo(Artist, "miles"));
			await bench.service.put(demo(Artist, "miles", "again"));
			await bench.settle();
			expect(changes).toEqual(["created", "updated"]);
			expect(reconciled).toEqual(["miles:"]);
		}),
	],
};
