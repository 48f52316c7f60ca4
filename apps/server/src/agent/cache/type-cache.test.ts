/** A cache holds states that the storage had, and knows how old they may be, whatever happens to its calls. */
import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createHandlerContext } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	ListRequestSchema,
	type Resource,
	ResourceService,
	Scope,
	type WatchSetEvent,
} from "@plinth/proto";
import {
	type DescribeTypeResponse,
	DescribeTypeResponseSchema,
} from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { idOf, resourceOf, TypeRegistry, tenancyOf, typeOf } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import { type Random, silentLogger } from "@plinth/runtime";
import { type SeededRuntime, seededRandom, seededRuntime } from "@plinth/runtime/testing";
import {
	createMemoryBackend,
	type StorageBackend,
	WatchDeliveries,
	wildcard,
} from "@plinth/storage";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { TourSchema } from "../../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, artist, Tour } from "../../../testdata/music.ts";
import { TypeCache, type TypeCacheOptions } from "./type-cache.ts";

const names = ["anna", "bert", "carl", "dora"] as const;
const everywhere = { partition: wildcard, namespace: wildcard };
const query = { type: Artist.type, tenancy: everywhere, namePrefix: "" };

/** How a test changes what a cache is told. */
interface Faults {
	readonly described?: (response: DescribeTypeResponse) => DescribeTypeResponse;
	/** Whether a message of a watch is lost. */
	readonly losesEvent?: (event: WatchSetEvent, random: Random) => boolean;
}

/** The versions of all artists, by name, as text. */
type State = string;

/** A storage that changes, and calls of it that fail and take their time. */
class SimulatedStorage {
	/** What was stored from a time and a version on. */
	readonly history: { readonly version: number; readonly atMs: number; readonly state: State }[] =
		[];
	readonly #runtime: SeededRuntime;
	readonly #clock: SeededRuntime["clock"];
	readonly #random: Random;
	readonly #faults: Faults;
	#backend: StorageBackend;
	#client: Client<typeof ResourceService>;
	isCalm = false;

	constructor(runtime: SeededRuntime, random: Random, faults: Faults) {
		this.#runtime = runtime;
		this.#clock = runtime.clock;
		this.#random = random;
		this.#faults = faults;
		[this.#backend, this.#client] = this.#open(0);
	}

	#open(afterVersion: number) {
		const runtime = this.#runtime;
		const backend = createMemoryBackend({ runtime, afterVersion });
		const service = createResourceService({
			...{ backend, runtime, registry: new TypeRegistry([Artist, Tour]) },
			authorizer: insecureAllowAll,
		});
		const client = createInProcessClient(
			ResourceService,
			createInProcessTransport((router) => router.service(ResourceService, service), runtime),
		);
		return [backend, client] as const;
	}

	/** Another storage takes the place of this one, as after a restore: with later versions, and without a history. */
	async replace(): Promise<void> {
		const last = this.history.at(-1)?.version ?? 0;
		await this.#backend.close();
		[this.#backend, this.#client] = this.#open(last + 1_000);
		await this.change();
	}

	/** Writes or deletes an artist, or writes a tour. */
	async change(): Promise<void> {
		const name = names[Math.floor(this.#random.next() * names.length)] ?? "anna";
		const isTour = this.#random.next() < 0.4;
		const resource = isTour
			? resourceOf(Tour, { id: idOf(Tour, name), data: create(TourSchema) })
			: artist(name, String(this.#random.next()));
		const { id } = resource;
		if (id === undefined) {
			throw new TypeError("a resource has an ID");
		}
		const stored = await this.#backend.lookup(id);
		const expectedVersion = stored?.version ?? "";
		const { version } = await this.#backend.commit([
			!isTour && stored !== undefined && this.#random.next() < 0.4
				? { op: "delete", id, expectedVersion }
				: { op: "put", expectedVersion, resource },
		]);
		const { resources } = await this.#backend.list(query);
		this.history.push({
			version: Number(version),
			atMs: this.#clock.monotonic(),
			state: stateOf(resources),
		});
	}

	readonly watchSet: Client<typeof ResourceService>["watchSet"] = (request, options) =>
		this.#breaking(this.#client.watchSet(request, options));

	readonly describeType: TypeCacheOptions["describing"]["describeType"] = async (
		{ notBefore = "" },
		_options,
	) => {
		this.#mayFail(0.2);
		await this.#delay();
		const { version, familyVersion } = await this.#backend
			.catchUp(new AbortController().signal)
			.then(() => this.#backend.snapshot(query))
			.catch((failure: unknown) => {
				throw ConnectError.from(failure, Code.Unavailable);
			});
		if (Number(version) < Number(notBefore)) {
			throw new ConnectError("the storage has not reached it", Code.OutOfRange);
		}
		const response = create(DescribeTypeResponseSchema, {
			...{ scope: Scope.NAMESPACE, version, typeVersion: familyVersion },
		});
		await this.#delay();
		this.#mayFail(0.1);
		return this.#faults.described?.(response) ?? response;
	};

	async *#breaking(events: AsyncIterable<WatchSetEvent>): AsyncGenerator<WatchSetEvent> {
		this.#mayFail(0.2);
		for await (const event of events) {
			await this.#delay();
			if (this.#faults.losesEvent?.(event, this.#random) !== true) {
				yield event;
			}
			this.#mayFail(0.05);
		}
	}

	#mayFail(share: number): void {
		if (!this.isCalm && this.#random.next() < share) {
			throw new ConnectError("the connection was cut", Code.Unavailable);
		}
	}

	#delay(): Promise<void> {
		return this.isCalm || this.#random.next() < 0.5
			? Promise.resolve()
			: new Promise((resolve) => {
					this.#clock.setTimer(3_000 * this.#random.next(), resolve);
				});
	}
}

function stateOf(
	resources: readonly {
		readonly id?: { readonly name: string } | undefined;
		readonly version: string;
	}[],
): State {
	return resources.map(({ id, version }) => `${id?.name} ${version}`).join();
}

/** Runs one history. Returns what was wrong, if anything was. */
async function run(seed: number, faults: Faults): Promise<string | undefined> {
	const runtime = seededRuntime({ seed });
	const { clock, scheduler } = runtime;
	const random = seededRandom(seed + 1);
	const storage = new SimulatedStorage(runtime, random, faults);
	await storage.change();
	let shown = 0;
	const warnings: string[] = [];
	const cache = new TypeCache({
		type: Artist.type,
		resources: storage as never,
		describing: storage,
		authorizer: insecureAllowAll,
		position: {
			get newest() {
				return shown;
			},
			replaced: 0,
			shown: (version) => {
				shown = Math.max(shown, version);
			},
		},
		deliveries: new WatchDeliveries(runtime),
		runtime,
		logger: {
			...silentLogger,
			warn: (fields, message) => warnings.push(`${message}: ${JSON.stringify(fields)}`),
		},
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
		const known = storage.history.findLast(({ atMs }) => atMs < clock.monotonic() - ageMs);
		return known !== undefined && known.version > version && known.state !== state
			? `the cache lacks version ${known.version} of ${clock.monotonic() - known.atMs} ms ago, and says that it has all of ${ageMs} ms ago`
			: undefined;
	};
	let checked = 0;
	for (let step = 0; step < 80; step += 1) {
		const chance = random.next();
		if (chance < 0.6) {
			await storage.change();
		} else if (chance < 0.63) {
			await storage.replace();
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

	const planted: readonly (readonly [string, Faults])[] = [
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
