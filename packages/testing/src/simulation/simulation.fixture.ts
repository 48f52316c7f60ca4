import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { ManagerState, ResourceClient } from "@plinth/controller";
import { IDSchema } from "@plinth/proto";
import { nameKey, type ResourceName } from "@plinth/resource";
import {
	type Clock,
	EventLoopScheduler,
	LocalLeases,
	type Random,
	silentLogger,
} from "@plinth/runtime";
import {
	SeededEventLoop,
	type SeededEventLoopOptions,
	SkewedClock,
	seededRandom,
	seededRuntime,
} from "@plinth/runtime/testing";
import { decorateBackend, Fenced, type StorageBackend } from "@plinth/storage";
import type { TestLeases } from "../leases/test-leases.ts";
import { TimedLeases } from "../leases/timed-leases.ts";
import { marketTypes } from "../market-types.fixture.ts";
import { startTestServer } from "../server/start-test-server.ts";
import type { TestServer } from "../server/test-server.ts";
import { startCrowd } from "./crowd.fixture.ts";
import { marketControllers } from "./market-controllers.fixture.ts";
import { compareWithModel } from "./market-model.fixture.ts";
import { SoleLeader } from "./sole-leader.fixture.ts";
import { StoredHistory } from "./stored-history.fixture.ts";
import { Troublemaker } from "./troublemaker.fixture.ts";

/** Faults to plant, to verify that the checks of the simulation detect them. */
export interface SimulationOptions {
	readonly wrapWatching?: (client: ResourceClient) => ResourceClient;
	readonly wrapWriting?: (client: ResourceClient) => ResourceClient;
	/** Whether watches deliver events in the wrong order. */
	readonly reorders?: boolean;
	/** The fraction of a lease's duration that clients rely on; above 1 they hold expired leases. */
	readonly safeFraction?: number;
	/**
	 * Whether a crowd uses the first server too: loops that never wait, writers of one resource, and many watchers. Its
	 * calls and controllers then run as microtasks, as in a process.
	 */
	readonly crowd?: SeededEventLoopOptions;
}

/** The result of a simulation. */
export interface SimulationResult {
	/** Descriptions of violated guarantees. */
	readonly violations: readonly string[];
	/** How often the events happened that the simulation is meant to cover. */
	readonly counts: {
		readonly reconciles: number;
		readonly restarts: number;
		readonly waits: number;
		/** Commits refused because another server held the lease. */
		readonly fenced: number;
		/** How often a server acquired the lease. */
		readonly leaders: number;
	};
	/** All stored changes in order, which identify a run. */
	readonly transcript: string;
	/** The longest time in which the first server let nothing else run, in milliseconds. 0 without a crowd. */
	readonly longestMs: number;
}

const steps = 50;

/**
 * Simulates a cluster of two servers with different clocks on one storage, with three controllers whose outputs
 * are inputs of the others, under faults of users, networks and the cluster. Then all faults end, and the
 * stored resources must follow from the users' declarations. With an even seed, the leases are local and
 * revoked; with an odd one, they are timed, and their holder is disconnected.
 */
export async function simulate(
	seed: number,
	options: SimulationOptions = {},
): Promise<SimulationResult> {
	// Many calls end with errors, whose stack traces are never read.
	const { stackTraceLimit } = Error;
	Error.stackTraceLimit = 0;
	try {
		return await simulateCluster(seed, options);
	} finally {
		Error.stackTraceLimit = stackTraceLimit;
	}
}

async function simulateCluster(
	seed: number,
	options: SimulationOptions,
): Promise<SimulationResult> {
	const random = seededRandom(seed * 31 + 7);
	const history = new StoredHistory();
	const leader = new SoleLeader();
	const fences = new RefusedFences();
	const runtime = seededRuntime({ seed, maxSteps: 200_000 });
	const { scheduler, clock } = runtime;
	const clocks = [skewed(clock, random), skewed(clock, random)] as const;
	const timed = new TimedLeases({
		clock,
		scheduler,
		...(options.safeFraction !== undefined && { safeFraction: options.safeFraction }),
	});
	const local = new LocalLeases();
	const leads = new GrantedLeases();
	const isTimed = seed % 2 === 1;
	const eventLoop =
		options.crowd && new SeededEventLoop(scheduler, seededRandom(seed ^ 0x85eb), options.crowd);
	const start = (name: string, serverClock: SkewedClock, joins?: TestServer) =>
		startTestServer({
			runtime,
			types: marketTypes,
			controllers: marketControllers(leader.on(name)),
			storageDelays: 0.3,
			clock: serverClock,
			...(eventLoop && joins === undefined && { scheduler: new EventLoopScheduler(eventLoop) }),
			leases: leads.count(isTimed ? timed.client(serverClock) : local),
			decorateBackend: (backend) => fences.count(history.record(backend)),
			logger: silentLogger,
			wrapWatching: options.wrapWatching ?? ((client) => client),
			wrapWriting: (client) => {
				const observed = acknowledging(client, history);
				return options.wrapWriting?.(observed) ?? observed;
			},
			...(joins && { joins }),
		});
	const first = await start("first", clocks[0]);
	const second = await start("second", clocks[1], first);
	const servers: readonly [TestServer, TestServer] = [first, second];
	const crowd = eventLoop && startCrowd(first, eventLoop, seed);
	const trouble = new Troublemaker({
		servers,
		random,
		reorders: options.reorders ?? false,
		changeLeader: () => {
			const holder = servers.find((server) => server.state?.holdsLease);
			holder?.leases.revoke("controllers");
			if (random.next() < 0.5) {
				timed.reconnectAll();
			}
		},
	});
	const violations: string[] = [];
	let states: readonly (ManagerState | undefined)[] = [];
	try {
		for (let step = 0; step < steps; step++) {
			trouble.act();
			await scheduler.runSome(Math.floor(random.next() * 40));
			if (random.next() < 0.3) {
				clock.advance(random.next() * (isTimed ? 5_000 : 2_000));
			}
		}
		trouble.end();
		timed.reconnectAll();
		await scheduler.run(Promise.all(trouble.pending));
		await scheduler.run(Promise.resolve(crowd?.calls));
		await first.quiesce();
		violations.push(...((await scheduler.run(Promise.resolve(crowd?.end()))) ?? []));
		const { expected, actual } = await compareWithModel(first.backend);
		if (!isDeepStrictEqual(actual, expected)) {
			violations.push(
				`at rest there is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`,
			);
		}
		states = servers.map((server) => server.state);
		await second[Symbol.asyncDispose]();
		await first[Symbol.asyncDispose]();
	} catch (error) {
		violations.push(`the simulation did not end: ${error}`);
	}
	const controllers = states.flatMap((state) => state?.controllers ?? []);
	return {
		violations: [...history.violations, ...leader.violations, ...trouble.violations, ...violations],
		counts: {
			reconciles: leader.reconciles,
			restarts: controllers.reduce((sum, { restarts }) => sum + restarts, 0),
			waits: controllers.reduce((sum, { ownWrites }) => sum + ownWrites.waits, 0),
			fenced: fences.refused,
			leaders: leads.granted,
		},
		transcript: history.transcript,
		longestMs: eventLoop?.longestMs ?? 0,
	};
}

/** The clock of a machine: a different time of day, and up to 5 % faster or slower. */
function skewed(clock: Clock, random: Random): SkewedClock {
	return new SkewedClock(clock, {
		offsetMs: Math.floor((random.next() - 0.5) * 86_400_000),
		rate: 0.95 + random.next() * 0.1,
	});
}

/** Records in the history which writes were acknowledged to the controllers. */
function acknowledging(client: ResourceClient, history: StoredHistory): ResourceClient {
	const tell = (id: ResourceName | undefined, version: string | undefined) => {
		if (id !== undefined && version) {
			history.onAcknowledged(nameKey(id), version);
		}
	};
	return {
		...client,
		write: async (request, options) => {
			const response = await client.write(request, options);
			tell(response.resource?.id, response.resource?.version);
			return response;
		},
		delete: async (request, options) => {
			const response = await client.delete(request, options);
			tell(create(IDSchema, request.id), response.version);
			return response;
		},
	};
}

/** Counts the commits that a storage refuses because of their fence. */
class RefusedFences {
	refused = 0;

	count(backend: StorageBackend): StorageBackend {
		return decorateBackend(backend, {
			commit: async (mutations, options) => {
				try {
					return await backend.commit(mutations, options);
				} catch (error) {
					if (error instanceof Fenced) {
						this.refused += 1;
					}
					throw error;
				}
			},
		});
	}
}

/** Counts the leases that are granted. */
class GrantedLeases {
	granted = 0;

	count(leases: TestLeases): TestLeases {
		return {
			acquire: async (name, signal) => {
				const hold = await leases.acquire(name, signal);
				this.granted += 1;
				return hold;
			},
			held: (prefix, signal) => leases.held(prefix, signal),
			isCurrent: (fence) => leases.isCurrent(fence),
			revoke: (name) => leases.revoke(name),
		};
	}
}
