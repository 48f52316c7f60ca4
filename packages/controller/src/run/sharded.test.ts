import { createResourceServiceCloningClient } from "@plinth/proto";
import { idOf, nameKey } from "@plinth/resource";
import { aborted, LocalLeases, type Logger, silentLogger, systemScheduler } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import type { ReconcileContext } from "../define/context.ts";
import { type Controller, defineController } from "../define/controller.ts";
import { requeueAfter } from "../define/requeue.ts";
import { type CustomWatch, watch, watchEvents } from "../define/watch.ts";
import { Artist, demo, Label, text } from "../demo-types.fixture.ts";
import { FakeService } from "../fake-service.fixture.ts";
import { type ControllerManager, createControllerManager } from "../manager/manager.ts";
import { sameNameAs } from "../mappers/same-name.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { shardCount, shardOf } from "../shards/shard-of.ts";

/** One server of a cluster. */
interface Server {
	readonly number: number;
	readonly manager: ControllerManager;
	/** Resolves when it has ended. Meanwhile time passes in steps of `stepMs`, by default a second. */
	stop(stepMs?: number): Promise<void>;
}

/** Servers that share a service and leases, and reconcile artists. */
class Cluster implements AsyncDisposable {
	readonly clock = new FakeClock();
	readonly service = new FakeService();
	readonly leases = new LocalLeases();
	readonly errors: string[] = [];
	readonly #controllersOf: (server: number) => readonly Controller[];
	readonly #servers: Server[] = [];

	constructor(controllersOf: (server: number) => readonly Controller[]) {
		this.#controllersOf = controllersOf;
		this.service.isCurrent = (fence) => this.leases.isCurrent(fence);
	}

	async start(): Promise<Server> {
		const number = this.#servers.length + 1;
		const logger: Logger = {
			...silentLogger,
			error: (_, message) => void this.errors.push(message),
		};
		const manager = createControllerManager({
			client: this.service.client,
			cloningClient: createResourceServiceCloningClient(this.service.client),
			runtime: { clock: this.clock, random: seededRandom(number), scheduler: systemScheduler },
			leases: this.leases,
			logger,
		});
		for (const controller of this.#controllersOf(number)) {
			manager.register(controller);
		}
		const stopped = new AbortController();
		const running = manager.run(stopped.signal);
		const stop = async (stepMs = 1_000) => {
			stopped.abort(new Error("the server stops"));
			let ended = false;
			void running.then(() => {
				ended = true;
			});
			while (!ended) {
				await this.advance(stepMs);
			}
		};
		const server = { number, manager, stop };
		this.#servers.push(server);
		await this.settle();
		return server;
	}

	/** Lets shards move, and the work on them begin. */
	async settle(): Promise<void> {
		for (let step = 0; step < 3; step++) {
			await this.advance(60);
		}
	}

	async advance(byMs: number): Promise<void> {
		await this.clock.advanceAsync(byMs);
		for (let turn = 0; turn < 8; turn++) {
			await new Promise((resolve) => setImmediate(resolve));
		}
	}

	async [Symbol.asyncDispose](): Promise<void> {
		for (const server of this.#servers) {
			await server.stop();
		}
	}
}

const openShards = ({ manager }: Server): readonly number[] =>
	manager.state().controllers[0]?.run?.shards?.open ?? [];
const shardOfArtist = (name: string) => shardOf(nameKey(idOf(Artist, name)));
const artists = Array.from({ length: 40 }, (_, at) => `artist-${at}`);

function sharded(
	reconcile: (context: ReconcileContext<Record<never, never>>, name: string) => Promise<void>,
): Controller {
	return defineController({
		name: "artist",
		manages: Artist,
		placement: "sharded",
		concurrency: 50,
		watches: [watch(Label, { map: sameNameAs(Artist) })],
		reconcile: (context, { id }) => reconcile(context, id.name),
	});
}

/** A sharded controller that has this watch, and does nothing. */
function shardedWith(source: CustomWatch): Controller {
	return defineController({
		name: "artist",
		manages: Artist,
		placement: "sharded",
		watches: [source],
		async reconcile() {},
	});
}

describe("a sharded controller", () => {
	it("runs on all servers, each for the resources of its shards", async () => {
		const by = new Map<string, number[]>();
		await using cluster = new Cluster((server) => [
			sharded(async (_, name) => void by.set(name, [...(by.get(name) ?? []), server])),
		]);
		const servers = [await cluster.start(), await cluster.start(), await cluster.start()];
		expect(servers.map((server) => openShards(server).length).sort()).toEqual([4, 6, 6]);
		expect(new Set(servers.flatMap(openShards)).size).toBe(shardCount);
		for (const name of artists) {
			cluster.service.put(demo(Artist, name));
		}
		await cluster.advance(0);
		for (const name of artists) {
			const owner = servers.find((server) => openShards(server).includes(shardOfArtist(name)));
			expect(by.get(name)).toEqual([owner?.number]);
		}
	});

	it("requests what a watched resource maps to at the server of its shard alone", async () => {
		const by: string[] = [];
		await using cluster = new Cluster((server) => [
			sharded(async (_, name) => void by.push(`${name} on ${server}`)),
		]);
		await cluster.start();
		await cluster.start();
		for (const name of artists) {
			cluster.service.put(demo(Label, name));
		}
		await cluster.advance(0);
		expect(by.length).toBe(artists.length);
		expect(new Set(by.map((each) => each.slice(-1)))).toEqual(new Set(["1", "2"]));
	});

	it("lets a reconcile end before its shard moves, and begins with what it has written", async () => {
		const gate = Promise.withResolvers<void>();
		const seen: string[] = [];
		await using cluster = new Cluster((server) => [
			sharded(async (context, name) => {
				const label = idOf(Label, name);
				seen.push(`${server} sees ${context.cache.get(Label, label)?.data.value}`);
				if (server === 1) {
					await gate.promise;
					await context.write(Label, { id: label, data: text(Label, "by 1") });
				}
			}),
		]);
		cluster.service.put(demo(Artist, "miles"));
		const first = await cluster.start();
		expect(seen).toEqual(["1 sees undefined"]);
		const others = [await cluster.start()];
		while (openShards(first).includes(shardOfArtist("miles"))) {
			others.push(await cluster.start());
		}
		await cluster.advance(4_000);
		expect(others.flatMap(openShards)).not.toContain(shardOfArtist("miles"));
		gate.resolve();
		await cluster.settle();
		expect(others.flatMap(openShards)).toContain(shardOfArtist("miles"));
		// The watch of labels may request it again, if the request of that write comes once the shard is open.
		expect([...new Set(seen.slice(1))]).toEqual([expect.stringMatching(/^[^1] sees by 1$/)]);
	});

	it("waits until its cache has what the former holder wrote", async () => {
		const seen: string[] = [];
		await using cluster = new Cluster((server) => [
			sharded(async (context, name) => {
				const label = idOf(Label, name);
				seen.push(`${server} sees ${context.cache.get(Label, label)?.data.value}`);
				if (!context.cache.get(Label, label)) {
					await context.write(Label, { id: label, data: text(Label, "once") });
				}
			}),
		]);
		const first = await cluster.start();
		const second = await cluster.start();
		const name = artists.find((each) => openShards(second).includes(shardOfArtist(each))) ?? "";
		const gate = cluster.service.shut("live demo.v1.Label");
		cluster.service.put(demo(Artist, name));
		await cluster.advance(0);
		expect(seen).toEqual(["2 sees undefined"]);
		// Its own watch of labels stands still as well; so it stops in less than its limit for that.
		await second.stop();
		await cluster.advance(5_000);
		expect(openShards(first)).not.toContain(shardOfArtist(name));
		gate.open();
		await cluster.settle();
		expect(openShards(first).length).toBe(shardCount);
		expect(new Set(seen.slice(1))).toEqual(new Set(["1 sees once"]));
	});

	it("aborts a reconcile that does not end in time, and refuses its late writes", async () => {
		const late = Promise.withResolvers<void>();
		const failures: string[] = [];
		const begun: number[] = [];
		await using cluster = new Cluster((server) => [
			sharded(async (context, name) => {
				begun.push(server);
				if (begun.length === 1) {
					await late.promise;
					await context
						.write(Label, { id: idOf(Label, name), data: text(Label, "late") })
						.catch((error: Error) => void failures.push(error.message));
				}
			}),
		]);
		cluster.service.put(demo(Artist, "miles"));
		const first = await cluster.start();
		while (openShards(first).includes(shardOfArtist("miles"))) {
			await cluster.start();
		}
		expect(begun).toEqual([1]);
		await cluster.advance(5_000);
		await cluster.advance(5_000);
		await cluster.settle();
		expect(begun.length).toBe(2);
		expect(cluster.errors).toEqual(["reconciles ignored their signal and did not end in time"]);
		late.resolve();
		await cluster.advance(0);
		expect(failures).toEqual([
			expect.stringMatching(/write refused: the lease of shard \d+ is lost/),
		]);
		expect(cluster.service.stored(idOf(Label, "miles"))).toBeUndefined();
	});

	it("aborts the work on a shard whose lease it loses, and takes it again", async () => {
		const reasons: string[] = [];
		let runs = 0;
		await using cluster = new Cluster(() => [
			sharded(async ({ signal }) => {
				runs += 1;
				if (runs === 1) {
					await new Promise<void>((resolve) => {
						signal.addEventListener("abort", () => resolve(), { once: true });
					});
					reasons.push(String(signal.reason));
				}
			}),
		]);
		const server = await cluster.start();
		cluster.service.put(demo(Artist, "miles"));
		await cluster.advance(0);
		cluster.leases.revoke(`controllers-artist-shard-${shardOfArtist("miles")}`);
		await cluster.advance(0);
		expect(reasons).toEqual([expect.stringContaining("the lease of shard")]);
		expect(openShards(server).length).toBe(shardCount - 1);
		await cluster.advance(1_000);
		await cluster.settle();
		expect(openShards(server).length).toBe(shardCount);
		expect(runs).toBe(2);
	});

	it("forgets requeues and failures of a shard that has moved", async () => {
		await using cluster = new Cluster(() => [
			{ ...sharded(async () => {}), reconcile: async () => requeueAfter(3_600_000) },
		]);
		for (const name of artists) {
			cluster.service.put(demo(Artist, name));
		}
		const first = await cluster.start();
		expect(first.manager.state().controllers[0]?.run?.requests.delayed).toBe(artists.length);
		const second = await cluster.start();
		const delayed = [first, second].map(
			({ manager }) => manager.state().controllers[0]?.run?.requests.delayed ?? 0,
		);
		expect(delayed.every((count) => count > 0)).toBe(true);
		expect(delayed.reduce((sum, count) => sum + count)).toBe(artists.length);
	});

	it("works on everything alone without a lease manager", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		for (const name of artists) {
			bench.service.put(demo(Artist, name));
		}
		await bench.start([sharded(async (_, name) => void seen.push(name))]);
		expect(seen.toSorted()).toEqual(artists.toSorted());
		expect(bench.state("artist").run?.shards).toBeUndefined();
	});

	it("takes no shards before its cache is primed", async () => {
		await using cluster = new Cluster(() => [sharded(async () => {})]);
		const first = await cluster.start();
		const gate = cluster.service.shut("snapshot demo.v1.Label");
		const second = await cluster.start();
		await cluster.advance(60_000);
		expect(openShards(first).length).toBe(shardCount);
		expect(openShards(second)).toEqual([]);
		gate.open();
		await cluster.settle();
		expect(openShards(first).length).toBe(shardCount / 2);
		expect(openShards(second).length).toBe(shardCount / 2);
	});

	it("divides the shards among the servers that run it, whatever others these run", async () => {
		const seen = new Set<string>();
		await using cluster = new Cluster((server) => {
			const other = sharded(async (_, name) => void seen.add(name));
			const failing = {
				...other,
				initialize: () => {
					throw new Error("never works here");
				},
			};
			const both = [sharded(async () => {}), { ...other, name: "other" }];
			return server === 1
				? both.slice(0, 1)
				: server === 2
					? both
					: [{ ...failing, name: "other" }];
		});
		for (let server = 1; server <= 3; server++) {
			await cluster.start();
		}
		for (const name of artists) {
			cluster.service.put(demo(Artist, name));
		}
		await cluster.settle();
		expect([...seen].toSorted()).toEqual(artists.toSorted());
	});

	it("does not begin work on a shard that is drained, if its run restarts", async () => {
		const begun: string[] = [];
		const late = Promise.withResolvers<void>();
		await using cluster = new Cluster((server) => [
			sharded(async (_, name) => {
				begun.push(`${name} on ${server}`);
				if (name === "miles" && server === 1) {
					await late.promise;
				}
			}),
		]);
		cluster.service.put(demo(Artist, "miles"));
		const first = await cluster.start();
		while (openShards(first).includes(shardOfArtist("miles"))) {
			await cluster.start();
		}
		cluster.service.breakWatches("demo.v1.Artist");
		await cluster.settle();
		const other = artists.find((name) => shardOfArtist(name) === shardOfArtist("miles")) ?? "";
		cluster.service.put(demo(Artist, other));
		await cluster.settle();
		expect(begun.filter((each) => each.endsWith(" on 1"))).toEqual(["miles on 1"]);
		late.resolve();
	});

	it.each([
		{
			what: "throws",
			listener: () => {
				throw new Error("broken listener");
			},
		},
		{ what: "rejects", listener: () => Promise.reject(new Error("broken listener")) },
	])("goes on if a listener of its share $what, and tells the others", async ({ listener }) => {
		let told = 0;
		const source = watchEvents("shares", {
			async *source({ share, signal }) {
				share.onChange(listener);
				share.onChange(() => {
					told += 1;
				});
				await aborted(signal);
				yield { key: "end", event: undefined };
			},
			map: () => [],
		});
		await using cluster = new Cluster(() => [shardedWith(source)]);
		const servers = [await cluster.start(), await cluster.start()];
		expect(servers.map((server) => openShards(server).length)).toEqual([8, 8]);
		expect(told).toBeGreaterThan(0);
		expect(cluster.errors).toContain("a listener of `share.onChange` failed");
	});

	it("calls a listener of its share that is added during a change at the next one, and none that was removed", async () => {
		let changes = 0;
		let renewed = 0;
		let removed = 0;
		const source = watchEvents("shares", {
			async *source({ share, signal }) {
				let removeOther = () => {};
				const renew = () => {
					const remove = share.onChange(() => {
						renewed += 1;
						if (renewed > 1_000) {
							throw new Error("more calls than changes");
						}
						removeOther();
						remove();
						renew();
					});
				};
				renew();
				share.onChange(() => {
					changes += 1;
				});
				removeOther = share.onChange(() => {
					removed += 1;
				});
				await aborted(signal);
				yield { key: "end", event: undefined };
			},
			map: () => [],
		});
		await using cluster = new Cluster(() => [shardedWith(source)]);
		await cluster.start();
		await cluster.start();
		expect(changes).toBeGreaterThan(0);
		expect({ renewed, removed }).toEqual({ renewed: changes, removed: 0 });
		expect(cluster.errors).toEqual([]);
	});

	it("requests what was deleted while a shard moved to it", async () => {
		const seen: string[] = [];
		await using cluster = new Cluster((server) => [
			sharded(async (context, name) => {
				seen.push(
					`${name} ${context.cache.get(Artist, idOf(Artist, name)) ? "is" : "was"} on ${server}`,
				);
			}),
		]);
		for (const name of artists) {
			cluster.service.put(demo(Artist, name));
		}
		await cluster.start();
		const second = await cluster.start();
		const name = artists.find((each) => openShards(second).includes(shardOfArtist(each))) ?? "";
		await second.stop(0);
		const gate = cluster.service.shut("call List");
		await cluster.settle();
		seen.length = 0;
		cluster.service.remove(idOf(Artist, name));
		await cluster.settle();
		expect(seen).toEqual([]);
		gate.open();
		await cluster.settle();
		expect(seen).toContain(`${name} was on 1`);
	});

	it("does not end the work under a later hold when an earlier one has been drained", async () => {
		const reasons: unknown[] = [];
		const late = Promise.withResolvers<void>();
		await using cluster = new Cluster((server) => [
			sharded(async ({ signal }, name) => {
				if (name === "miles" && server === 1) {
					signal.addEventListener("abort", () => reasons.push(signal.reason), { once: true });
					await late.promise;
				}
			}),
		]);
		cluster.service.put(demo(Artist, "miles"));
		const first = await cluster.start();
		const shard = shardOfArtist("miles");
		const others: Server[] = [];
		while (openShards(first).includes(shard)) {
			others.push(await cluster.start());
		}
		// While it drains, the lease is lost, and those that wanted the shard are gone.
		cluster.leases.revoke(`controllers-artist-shard-${shard}`);
		for (const other of others) {
			await other.stop(0);
		}
		expect(reasons.map(String)).toEqual([`Error: the lease of shard ${shard} is lost`]);
		await cluster.advance(5_000);
		await cluster.settle();
		expect(reasons.length).toBe(1);
		late.resolve();
	});
});
