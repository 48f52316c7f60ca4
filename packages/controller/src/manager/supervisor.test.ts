import { idOf } from "@plinth/resource";
import { LocalLeases, sleep } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import type { ReconcileContext } from "../define/context.ts";
import { defineController, type Placement } from "../define/controller.ts";
import { watchEvents } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo, Label } from "../demo-types.fixture.ts";
import { TestBench } from "../running-manager.fixture.ts";

const never = new AbortController().signal;

function named(
	name: string,
	manages: DemoType,
	reconcile: (context: ReconcileContext<Record<never, never>>, name: string) => Promise<void>,
	more: { readonly initialize?: () => void | Promise<void>; readonly placement?: Placement } = {},
) {
	return defineController({
		name,
		manages,
		reconcile: (context, { id }) => reconcile(context, id.name),
		...more,
	});
}

describe("supervision", () => {
	it("restarts a failing controller without affecting another", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		const healthy = named("healthy", Artist, async (_, name) => void seen.push(name));
		const failing = named("failing", Album, async () => {}, {
			initialize: () => {
				throw new Error("never works");
			},
		});
		await bench.start([healthy, failing]);
		for (let round = 0; round < 10; round++) {
			bench.service.put(demo(Artist, `artist${round}`));
			await bench.advance(5_000);
		}
		expect(seen).toEqual(Array.from({ length: 10 }, (_, round) => `artist${round}`));
		expect(bench.state("healthy")).toMatchObject({ phase: "running", restarts: 0 });
		expect(bench.state("failing").restarts).toBeGreaterThan(3);
		const watched = bench.service.watches.filter(({ type }) => type === "demo.v1.Artist");
		expect(watched.length).toBe(2);
	});

	it("restarts a controller that fails with an error that can't be read", async () => {
		await using bench = new TestBench();
		let starts = 0;
		const failing = named("failing", Album, async () => {}, {
			initialize: () => {
				starts += 1;
				throw Object.defineProperty(new Error(), "message", {
					get: () => {
						throw new Error("can't be read");
					},
				});
			},
		});
		await bench.start([failing]);
		await bench.advance(5_000);
		expect(starts).toBeGreaterThan(1);
		expect(bench.state("failing").lastError?.message).toBe("an error without a message");
	});

	it("doubles the delay from half a second to a minute, with jitter, while starts fail", async () => {
		await using bench = new TestBench();
		const starts: number[] = [];
		const failing = named("failing", Album, async () => {}, {
			initialize: () => {
				starts.push(bench.clock.monotonic());
				throw new Error("never works");
			},
		});
		await bench.start([failing]);
		await bench.advance(600_000);
		const delays = starts.slice(1).map((at, index) => at - (starts[index] ?? 0));
		for (const [index, delayMs] of delays.entries()) {
			const base = 500 * 2 ** index;
			expect(delayMs).toBeGreaterThanOrEqual(Math.min(60_000, base));
			expect(delayMs).toBeLessThanOrEqual(Math.min(60_000, 2 * base));
		}
		expect(delays.at(-1)).toBe(60_000);
		expect(new Set(delays.map((delayMs, index) => delayMs / 2 ** index)).size).toBeGreaterThan(3);
	});

	it("restarts immediately after a healthy run", async () => {
		await using bench = new TestBench();
		await bench.start([named("artist", Artist, async () => {})]);
		await bench.advance(1_999);
		bench.service.breakWatches("demo.v1.Artist");
		await bench.settle();
		expect(bench.state("artist").phase).toBe("backing-off");
		await bench.advance(5_000);
		expect(bench.state("artist").phase).toBe("running");
		bench.service.breakWatches("demo.v1.Artist");
		await bench.settle();
		expect(bench.state("artist")).toMatchObject({ phase: "running", restarts: 2 });
	});

	it("backs off more each time from runs that take long to fail while they initialize", async () => {
		await using bench = new TestBench();
		const starts: number[] = [];
		const failing = named("failing", Album, async () => {}, {
			initialize: async () => {
				starts.push(bench.clock.monotonic());
				await sleep(bench.clock, 3_000, never);
				throw new Error("timed out");
			},
		});
		await bench.start([failing]);
		await bench.advance(120_000);
		const delays = starts.slice(1).map((at, index) => at - (starts[index] ?? 0) - 3_000);
		expect(delays.length).toBeGreaterThan(3);
		for (const [index, delayMs] of delays.entries()) {
			expect(delayMs).toBeGreaterThanOrEqual(500 * 2 ** index);
		}
	});

	it("backs off from a run that fails soon after it took long to start", async () => {
		await using bench = new TestBench();
		await bench.start([
			named("artist", Artist, async () => {}, {
				initialize: () => sleep(bench.clock, 3_000, never),
			}),
		]);
		await bench.advance(3_000);
		expect(bench.state("artist").phase).toBe("running");
		bench.service.breakWatches("demo.v1.Artist");
		await bench.settle();
		expect(bench.state("artist").phase).toBe("backing-off");
	});

	it("fails the item alone when a reconciler throws, and logs stack and key", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		const controller = named("artist", Artist, async (_, name) => {
			seen.push(name);
			if (name === "bad") {
				throw new Error("bad artist");
			}
		});
		await bench.start([controller]);
		bench.service.put(demo(Artist, "bad"));
		await bench.settle();
		bench.service.put(demo(Artist, "good"));
		await bench.settle();
		expect(seen).toEqual(["bad", "good"]);
		const line = bench.log.find(({ message }) => message === "reconcile failed");
		expect(line?.fields).toMatchObject({
			controller: "artist",
			key: "demo.Artist/default/default/bad",
			failures: 1,
		});
		const delayMs = Number(line?.fields.delayMs);
		expect(delayMs).toBeGreaterThanOrEqual(2);
		expect(delayMs).toBeLessThanOrEqual(8);
		expect(line?.fields.err).toHaveProperty("stack");
		expect(bench.state("artist").restarts).toBe(0);
		await bench.advance(delayMs + 1);
		expect(seen).toEqual(["bad", "good", "bad"]);
	});

	it("lets reconciles finish when it is stopped, and starts no more", async () => {
		const bench = new TestBench();
		const seen: string[] = [];
		const { promise: finish, resolve } = Promise.withResolvers<void>();
		const controller = named("artist", Artist, async (context, name) => {
			seen.push(name);
			await finish;
			seen.push(context.signal.aborted ? "aborted" : "finished");
			await context.write(Album, { id: idOf(Album, "last") });
		});
		await bench.start([controller]);
		bench.service.put(demo(Artist, "a"));
		bench.service.put(demo(Artist, "b"));
		await bench.settle();
		const stopped = bench.stop();
		await bench.settle();
		expect(bench.state("artist").phase).toBe("stopping");
		resolve();
		await stopped;
		expect(seen).toEqual(["a", "finished"]);
		expect(bench.service.stored(idOf(Album, "last"))).toBeDefined();
		expect(bench.service.watches.every(({ ended }) => ended)).toBe(true);
		expect(bench.clock.nextTimerMs()).toBeUndefined();
	});

	it("gives up on a reconcile that ignores the stop after the limit, naming it", async () => {
		const bench = new TestBench();
		let context: ReconcileContext | undefined;
		const controller = named("artist", Artist, (given) => {
			context = given;
			return new Promise(() => {});
		});
		await bench.start([controller]);
		bench.service.put(demo(Artist, "stuck"));
		await bench.settle();
		const stopped = bench.stop();
		let ended = false;
		void stopped.then(() => {
			ended = true;
		});
		await bench.advance(4_999);
		expect(context?.signal.aborted).toBe(false);
		await bench.advance(1);
		expect(context?.signal.aborted).toBe(true);
		expect(ended).toBe(false);
		await bench.advance(5_000);
		expect(ended).toBe(true);
		expect(bench.log.at(-2)?.fields.keys).toEqual(["demo.Artist/default/default/stuck"]);
		expect(bench.state("artist").orphaned).toEqual(["demo.Artist/default/default/stuck"]);
		await expect(context?.write(Label, { id: idOf(Label, "late") })).rejects.toThrow(
			"the run of its controller has ended",
		);
	});
});

describe("leases", () => {
	it("runs singletons only while the lease is held, each-server ones always", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		const other = await leases.acquire("controllers", new AbortController().signal);
		const manager = await bench.start(
			[
				named("single", Artist, async () => {}),
				named("each", Album, async () => {}, { placement: "each-server" }),
			],
			{ leases },
		);
		expect(bench.state("single").phase).toBe("waiting-for-lease");
		expect(bench.state("each").phase).toBe("running");
		expect(manager.state().holdsLease).toBe(false);
		await other.release();
		await bench.settle();
		expect(bench.state("single").phase).toBe("running");
		expect(manager.state().holdsLease).toBe(true);
	});

	it("leaves the lease of singletons to others if there are none", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		const manager = await bench.start(
			[named("shards", Artist, async () => {}, { placement: "sharded" })],
			{ leases },
		);
		await bench.settle();
		expect(bench.state("shards").phase).toBe("running");
		expect(manager.state().holdsLease).toBeUndefined();
		const other = await leases.acquire("controllers", AbortSignal.timeout(300_000));
		expect(other.signal.aborted).toBe(false);
	});

	it("aborts a singleton's run immediately when the lease is lost, and refuses its later writes", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		const outcomes: string[] = [];
		const { promise: goOn, resolve } = Promise.withResolvers<void>();
		const controller = named("single", Artist, async (context) => {
			await goOn;
			outcomes.push(context.signal.aborted ? "aborted" : "going on");
			await context.write(Album, { id: idOf(Album, "late") }).catch((error: Error) => {
				outcomes.push(error.message);
			});
		});
		await bench.start([controller], { leases });
		bench.service.put(demo(Artist, "miles"));
		await bench.settle();
		leases.revoke("controllers");
		resolve();
		await bench.settle();
		expect(outcomes.slice(0, 2)).toEqual([
			"aborted",
			"[failed_precondition] write refused: the lease of its controller is lost",
		]);
		expect(bench.service.stored(idOf(Album, "late"))).toBeDefined();
		expect(bench.state("single")).toMatchObject({ phase: "running", restarts: 0 });
	});

	it("aborts a singleton's reconciles immediately when the lease is lost during a graceful stop", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		let signal: AbortSignal | undefined;
		const controller = named("single", Artist, async (context) => {
			signal = context.signal;
			await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
		});
		bench.service.put(demo(Artist, "miles"));
		await bench.start([controller], { leases });
		void bench.stop();
		await bench.settle();
		expect(signal?.aborted).toBe(false);
		leases.revoke("controllers");
		await bench.settle();
		expect(signal?.aborted).toBe(true);
	});

	it("carries the token of its lease in each write, status and deletion", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		const single = named("single", Artist, async (context, name) => {
			const found = context.cache.get(Artist, idOf(Artist, name));
			if (found !== undefined) {
				await context.writeStatusIfChanged(found.resource, { conditions: [{ type: "Seen" }] });
				await context.write(Album, { id: idOf(Album, "blue") });
				await context.delete(idOf(Album, "blue"));
			}
		});
		const each = named(
			"each",
			Label,
			async (context) => void (await context.write(Album, { id: idOf(Album, "free") })),
			{ placement: "each-server" },
		);
		await bench.start([single, each], { leases });
		bench.service.put(demo(Artist, "miles"));
		bench.service.put(demo(Label, "columbia"));
		await bench.settle();
		const fences = new Map(
			bench.service.writes.map(({ method, id, fence }) => [`${method} ${id?.name}`, fence]),
		);
		expect(Object.fromEntries(fences)).toEqual({
			"WriteStatus miles": "controllers/1",
			"Write blue": "controllers/1",
			"Delete blue": "controllers/1",
			"Write free": null,
		});
	});

	it("fences what the source of a custom watch writes as well", async () => {
		await using bench = new TestBench();
		const source = watchEvents("writer", {
			async *source({ client }) {
				const { resource } = await client.write({ resource: demo(Album, "from-source") });
				yield { key: "album", event: resource };
			},
			map: () => [],
		});
		const controller = defineController({
			name: "single",
			manages: Artist,
			watches: [source],
			reconcile: async () => {},
		});
		await bench.start([controller], { leases: new LocalLeases() });
		expect(bench.service.writes.map(({ fence }) => fence)).toEqual(["controllers/1"]);
	});

	it("resets the backoff when the lease is lost", async () => {
		await using bench = new TestBench();
		const leases = new LocalLeases();
		const starts: number[] = [];
		const controller = named("single", Artist, async () => {}, {
			initialize: () => {
				starts.push(bench.clock.monotonic());
				throw new Error("never works");
			},
		});
		await bench.start([controller], { leases });
		await bench.advance(20_000);
		const before = starts.length;
		leases.revoke("controllers");
		await bench.settle();
		expect(starts.length).toBe(before + 1);
		await bench.advance(1_000);
		expect(starts.length).toBe(before + 2);
	});

	it("releases the lease when everything has ended", async () => {
		const bench = new TestBench();
		const leases = new LocalLeases();
		await bench.start([named("single", Artist, async () => {})], { leases });
		await bench.stop();
		const hold = await leases.acquire("controllers", new AbortController().signal);
		expect(hold.fence.token).toBe("2");
	});
});
