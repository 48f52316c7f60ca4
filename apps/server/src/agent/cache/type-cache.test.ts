/** A cache holds states that the storage had, and knows how old they may be, whatever happens to its calls. */
import { create } from "@bufbuild/protobuf";
import { createHandlerContext } from "@connectrpc/connect";
import { ListRequestSchema, type Resource, ResourceService } from "@plinth/proto";
import { tenancyOf, typeOf } from "@plinth/resource";
import { insecureAllowAll } from "@plinth/resource-service";
import { type Clock, type Logger, type Runtime, silentLogger } from "@plinth/runtime";
import { seededRandom, seededRuntime } from "@plinth/runtime/testing";
import { WatchDeliveries } from "@plinth/storage";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { Artist } from "../../../testdata/music.ts";
import {
	everywhere,
	type Faults,
	ShownPosition,
	SimulatedStorage,
	stateOf,
} from "./simulated-storage.fixture.ts";
import { TypeCache, type TypeCacheOptions } from "./type-cache.ts";

function cacheOf(
	storage: SimulatedStorage,
	runtime: Runtime,
	logger: Logger,
	describing: TypeCacheOptions["describing"] = storage,
): TypeCache {
	return new TypeCache({
		type: Artist.type,
		resources: storage as never,
		describing,
		authorizer: insecureAllowAll,
		position: new ShownPosition(),
		deliveries: new WatchDeliveries(runtime),
		...{ runtime, logger },
	});
}

/** How a history is run. */
interface Course extends Faults {
	/** Whether the wall clock of the agent stands still as well while its machine is suspended. */
	readonly hidesSuspensions?: boolean;
}

/** Runs one history. Returns what was wrong, if anything was. */
async function run(seed: number, faults: Course): Promise<string | undefined> {
	const runtime = seededRuntime({ seed });
	const { clock, scheduler } = runtime;
	const random = seededRandom(seed + 1);
	const storage = new SimulatedStorage(runtime, random, faults);
	await storage.change();
	const warnings: string[] = [];
	const ownClock: Clock = {
		now: () => (faults.hidesSuspensions === true ? clock.monotonic() : clock.now()),
		monotonic: () => clock.monotonic(),
		setTimer: (delayMs, callback) => clock.setTimer(delayMs, callback),
	};
	const ownRuntime = { ...runtime, clock: ownClock };
	const cache = cacheOf(storage, ownRuntime, {
		...silentLogger,
		warn: (fields, message) => warnings.push(`${message}: ${JSON.stringify(fields)}`),
	});
	const pass = async (ms: number) => {
		clock.advance(ms);
		await scheduler.runSome(2_000);
	};
	/** What is wrong with the cache now. */
	const problem = async (): Promise<string | undefined> => {
		const { service, version, ageMs } = cache;
		if (warnings.length > 0) {
			return `the cache doubts what servers say: ${warnings[0]}`;
		}
		if (service === undefined) {
			return undefined;
		}
		const { resources } = await service.list(
			create(ListRequestSchema, { type: typeOf(Artist.type), tenancy: tenancyOf(everywhere) }),
			callOf("list"),
		);
		const state = stateOf((resources ?? []) as Resource[]);
		const expected = storage.history.findLast((each) => each.version <= version)?.state;
		if (state !== expected) {
			return `at version ${version}, the cache has ${state} instead of ${expected}`;
		}
		const known = storage.history.findLast(({ atMs }) => atMs < clock.now() - ageMs - 1);
		return known !== undefined && known.version > version && known.state !== state
			? `the cache lacks version ${known.version} of ${clock.now() - known.atMs} ms ago, and says that it has all of ${ageMs} ms ago`
			: undefined;
	};
	let checked = 0;
	for (let step = 0; step < 80; step += 1) {
		const chance = random.next();
		if (chance < 0.6) {
			await storage.change();
		} else if (chance < 0.63) {
			await storage.replace();
		} else if (chance < 0.66) {
			// The machine is suspended: only the wall clock moves.
			clock.jump(2_000 + 60_000 * random.next());
			await storage.change();
			clock.jump(2_000 + 60_000 * random.next());
			const wrong = await problem();
			if (wrong !== undefined) {
				cache.close();
				return `step ${step}, after a suspension: ${wrong}`;
			}
		}
		await pass(2_000 * random.next());
		const wrong = await problem();
		if (wrong !== undefined) {
			cache.close();
			return `step ${step}: ${wrong}`;
		}
		checked += Number(cache.service !== undefined);
	}
	storage.isCalm = true;
	await storage.change();
	for (let count = 0; count < 100; count += 1) {
		await pass(1_000);
	}
	const newest = storage.history.at(-1)?.version ?? 0;
	const reached = cache.reach(newest, 1_000);
	for (let count = 0; count < 20; count += 1) {
		await pass(100);
	}
	const hasReached = (await reached) && cache.service !== undefined;
	const wrong = await problem();
	cache.close();
	if (checked === 0) {
		return "the cache was never used";
	}
	return hasReached
		? wrong
		: "the cache does not reach the newest version of a storage that is calm";
}

/** The context of a call without a token. */
function callOf(method: "list") {
	return createHandlerContext({
		...{ service: ResourceService, method: ResourceService.method[method] },
		...{ protocolName: "grpc", requestMethod: "POST", url: "http://localhost/" },
	});
}

describe("the cache of a type", () => {
	it("holds states that the storage had, and is as old as it says at most", async () => {
		await forEachSeed(30, async (seed) => {
			expect(await run(seed, {})).toBeUndefined();
		});
	});

	it("knows the region of the servers once one of them has told it, and reads requests as they do", async () => {
		const runtime = seededRuntime({ seed: 1 });
		const random = seededRandom(1);
		let region: string | undefined;
		const faults: Faults = {
			described: ({ region: _, ...response }) => ({
				...response,
				...(region !== undefined && { region }),
			}),
		};
		const storage = new SimulatedStorage(runtime, random, faults);
		storage.isCalm = true;
		const stored = () => storage.history.at(-1)?.state ?? "";
		while (stored() === "") {
			await storage.change();
		}
		const cache = cacheOf(storage, runtime, silentLogger);
		const passUntil = async (isSo: () => boolean) => {
			for (let step = 0; step < 1_000 && !isSo(); step += 1) {
				runtime.clock.advance(100);
				await runtime.scheduler.runSome(2_000);
			}
			expect(isSo()).toBe(true);
		};
		const listed = async () => {
			const query = { type: typeOf(Artist.type), tenancy: tenancyOf(everywhere), region: "eu" };
			const response = await cache.service?.list(create(ListRequestSchema, query), callOf("list"));
			return stateOf((response?.resources ?? []) as Resource[]);
		};
		await passUntil(() => cache.service !== undefined);
		expect(cache.knowsRegion).toBe(false);
		const older = cache.service;
		region = "eu";
		await passUntil(() => cache.knowsRegion && cache.service !== undefined);
		expect(cache.service).not.toBe(older);
		expect(await listed()).toBe(stored());
		// Now a server of an earlier release responds.
		const newer = cache.service;
		region = undefined;
		const { version } = cache;
		await storage.change();
		await passUntil(() => cache.version > version);
		expect([cache.knowsRegion, cache.service === newer]).toEqual([true, true]);
		cache.close();
	});

	it("serves nothing after a suspension of the machine, until a check that begins at once has succeeded", async () => {
		const runtime = seededRuntime({ seed: 1 });
		const { clock, scheduler } = runtime;
		let checks = 0;
		const storage = new SimulatedStorage(runtime, seededRandom(1), {});
		storage.isCalm = true;
		const describing: TypeCacheOptions["describing"] = {
			describeType: (...request) => {
				checks += 1;
				return storage.describeType(...request);
			},
		};
		await storage.change();
		const cache = cacheOf(storage, runtime, silentLogger, describing);
		const passUntil = async (isSo: () => boolean) => {
			for (let step = 0; step < 1_000 && !isSo(); step += 1) {
				clock.advance(100);
				await scheduler.runSome(2_000);
			}
			expect(isSo()).toBe(true);
		};
		await passUntil(() => cache.service !== undefined);
		clock.jump(3_600_000);
		const before = checks;
		expect([cache.service, cache.ageMs]).toEqual([undefined, Number.POSITIVE_INFINITY]);
		expect(checks).toBe(before + 1);
		await passUntil(() => cache.service !== undefined);
		// The wall clock may be set back.
		clock.jump(-3_600_000);
		expect(cache.service).toBeDefined();
		cache.close();
	});

	const planted: readonly (readonly [string, Course])[] = [
		["suspensions of the machine were not noticed", { hidesSuspensions: true }],
		[
			"servers named too early a version as that of the last change",
			{ described: (response) => ({ ...response, typeVersion: "0" }) },
		],
		[
			"events were lost",
			{ losesEvent: ({ content }, random) => content.case === "event" && random.next() < 0.05 },
		],
	];

	it.each(planted)("would not if %s", async (_, faults) => {
		let found: string | undefined;
		for (let seed = 1; seed <= 100 && found === undefined; seed += 1) {
			found = await run(seed, faults);
		}
		expect(found).toMatch(/instead of|lacks|doubts/);
	});
});
