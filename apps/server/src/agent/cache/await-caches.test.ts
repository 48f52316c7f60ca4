/** What the calls of several caches wait for, and what that costs the servers. */
import { Code, ConnectError } from "@connectrpc/connect";
import { insecureAllowAll } from "@plinth/resource-service";
import { silentLogger } from "@plinth/runtime";
import { seededRandom, seededRuntime } from "@plinth/runtime/testing";
import { WatchDeliveries } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, Tour } from "../../../testdata/music.ts";
import { whenPrimed, whenReached } from "./await-caches.ts";
import { ShownPosition, SimulatedStorage } from "./simulated-storage.fixture.ts";
import { TypeCache, type TypeCacheOptions } from "./type-cache.ts";

const future = 9_000_000_000_000_000;

type Described = Parameters<TypeCacheOptions["describing"]["describeType"]>[0];

/** Caches of artists and of tours, in front of a storage that is calm. */
function start() {
	const runtime = seededRuntime({ seed: 1 });
	const { clock, scheduler } = runtime;
	const storage = new SimulatedStorage(runtime, seededRandom(1), {});
	storage.isCalm = true;
	const position = new ShownPosition();
	/** The versions that calls of DescribeType have named. */
	const named: string[] = [];
	const stalls = { of: (_: Described): Promise<void> | undefined => undefined };
	const describing: TypeCacheOptions["describing"] = {
		describeType: async (request, options) => {
			if (request.notBefore) {
				named.push(request.notBefore);
			}
			await stalls.of(request);
			return storage.describeType(request, options);
		},
	};
	const [artists, tours] = [Artist, Tour].map(
		({ type }) =>
			new TypeCache({
				...{ type, describing, position, runtime },
				resources: storage as never,
				authorizer: insecureAllowAll,
				deliveries: new WatchDeliveries(runtime),
				logger: silentLogger,
			}),
	) as [TypeCache, TypeCache];
	onTestFinished(() => {
		artists.close();
		tours.close();
	});
	const reach = (...versions: readonly [number, number]) =>
		whenReached(
			new Map([
				[artists, versions[0]],
				[tours, versions[1]],
			]),
			{ clock, newest: position.newest, limitMs: 5_000 },
		);
	/** What a promise resolves with if it needs no time; otherwise `undefined`. */
	const now = async (awaited: Promise<boolean>): Promise<boolean | undefined> => {
		let outcome: boolean | undefined;
		void awaited.then((value) => {
			outcome = value;
		});
		await scheduler.drain();
		return outcome;
	};
	return { scheduler, storage, position, named, stalls, artists, tours, reach, now };
}

async function startPrimed() {
	const started = start();
	const { scheduler, storage, artists, tours } = started;
	await storage.change();
	await scheduler.until(() => [artists, tours].every(({ service }) => service !== undefined));
	return started;
}

/** Whether a request is about a type. */
const isOf = ({ type }: Described, { kind }: { readonly kind: string }) => type?.kind === kind;

function refusal(): ConnectError {
	return new ConnectError("lacks operator:read on all of them", Code.PermissionDenied);
}

describe("a version that the storage has not reached", () => {
	it.each([
		["of all caches", future, future],
		["of one cache", 1, future],
		["of each cache another", future - 1, future],
	])("costs the servers one call: %s", async (_, ofArtists, ofTours) => {
		const { named, reach, now } = await startPrimed();
		expect(await now(reach(ofArtists, ofTours))).toBe(false);
		expect(named).toEqual([String(future)]);
	});

	it("is reached when the storage has reached it", async () => {
		const { storage, reach, named, now, artists, tours } = await startPrimed();
		const version = artists.version + 1;
		await storage.change();
		expect(await now(reach(version, version))).toBe(true);
		expect(artists.version).toBeGreaterThanOrEqual(version);
		expect(tours.version).toBeGreaterThanOrEqual(version);
		expect(new Set(named)).toEqual(new Set([String(version)]));
	});
});

it("a version that one cache has costs another one a check, which calls share", async () => {
	const { scheduler, storage, reach, named, artists, tours } = await startPrimed();
	const isOfArtist = () => storage.history.at(-1)?.state !== storage.history.at(-2)?.state;
	do {
		await storage.change();
	} while (!isOfArtist());
	await scheduler.drain();
	const { version } = artists;
	expect(version).toBe(storage.history.at(-1)?.version);
	expect(tours.version).toBeLessThan(version);
	const calls = Array.from({ length: 20 }, () => reach(version, version));
	expect(await scheduler.run(Promise.all(calls))).toEqual(Array(20).fill(true));
	expect(named).toEqual([String(version)]);
});

describe("no call waits for other caches", () => {
	it("when one has not reached its version", async () => {
		const { position, stalls, reach, now } = await startPrimed();
		position.shown(future);
		stalls.of = (request) => (isOf(request, Tour.type) ? new Promise(() => {}) : undefined);
		expect(await now(reach(future, future))).toBe(false);
	});

	it("when one is refused", async () => {
		const { stalls, artists, tours, now } = start();
		const refused = Promise.withResolvers<void>();
		stalls.of = (request) => (isOf(request, Tour.type) ? refused.promise : new Promise(() => {}));
		const primed = whenPrimed([artists, tours], 10_000);
		expect(await now(primed)).toBeUndefined();
		refused.reject(refusal());
		expect(await now(primed)).toBe(false);
		expect(await now(whenPrimed([artists, tours], 10_000))).toBe(false);
	});
});

it("caches are primed when all of them are", async () => {
	const { scheduler, storage, artists, tours } = start();
	await storage.change();
	expect(await scheduler.run(whenPrimed([artists, tours], 60_000))).toBe(true);
	expect([artists.service, tours.service]).not.toContain(undefined);
});
