import {
	type Client,
	Code,
	ConnectError,
	type Interceptor,
	type Transport,
} from "@connectrpc/connect";
import type { Controller, ControllerState } from "@plinth/controller";
import {
	Album,
	Artist,
	type Bench,
	type BenchService,
	Label,
	type LoggedLine,
} from "@plinth/controller/suite";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { createLeaseService } from "@plinth/leases";
import { ResourceService, type WatchListRequest } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { createPlinthTransport } from "@plinth/rpc-client";
import { LocalLeases, LocalTimedLeases, type Logger, systemScheduler } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { defineModule } from "../module/index.ts";
import { type AgentManagers, startManagers } from "./agent-managers.ts";
import { ControllerCalls } from "./controller-calls.fixture.ts";
import { KilledCluster } from "./killed-cluster.fixture.ts";
import { nameOf, type OpenedWatch, StalledService } from "./stalled-service.fixture.ts";

/** The types of the controllers under test. */
const types = [Artist, Album, Label];

/** For how many iterations of the event loop nothing must be left to do. */
const quietTurns = 20;

/** The longest step of the controllers' clock: leases must be renewed in between. */
const stepMs = 1_000;

/** How often servers are killed or replaced until there is nothing left to do: watches that were cut off move between. */
const mostChanges = 3;

const patienceMs = 300_000;

/** The options of a bench. */
export interface AgentBenchOptions {
	/** Decides when which server is killed. */
	readonly seed: number;
	/** To show that the tests find it. */
	readonly fault?: Fault;
}

/** A fault in what controllers receive, or in what servers do. */
export interface Fault {
	readonly controllers?: Interceptor;
	/** Changes the requests of watches at the servers, knowing those that the controllers have open. */
	readonly servers?: (request: WatchListRequest, open: readonly OpenedWatch[]) => WatchListRequest;
}

/** What is served, and by whom it is called. */
interface Parts {
	readonly service: StalledService;
	/** A user that calls the service without any agent. */
	readonly user: Client<typeof ResourceService>;
	/** The clock of the service and of its storage. */
	readonly serviceClock: FakeClock;
	readonly calls: ControllerCalls;
	readonly cluster: KilledCluster;
	/** Calls the agent. */
	readonly transport: Transport;
}

/**
 * Controllers in an agent, which forwards their calls over sockets to two servers. Both servers have the same storage, in this
 * process, and one of them is killed and replaced again and again.
 *
 * The controllers have a clock of their own, and so does the storage. Sockets, servers and the agent use that of the system.
 */
export class AgentBench implements Bench {
	readonly clock = new FakeClock();
	readonly service: BenchService;
	readonly #parts: Parts;
	readonly #started: AsyncDisposableStack;
	readonly #log: LoggedLine[] = [];
	#managers: AgentManagers | undefined;
	#stopped: Promise<void> | undefined;

	static async open(options: AgentBenchOptions): Promise<AgentBench> {
		await using started = new AsyncDisposableStack();
		const parts = await openParts(options, started);
		return new AgentBench(parts, started.move());
	}

	private constructor(parts: Parts, started: AsyncDisposableStack) {
		this.#parts = parts;
		this.#started = started;
		this.service = benchService(parts);
	}

	/** How often a server was killed. */
	get kills(): number {
		return this.#parts.cluster.kills;
	}

	async start(controllers: readonly Controller[]): Promise<void> {
		this.#managers = startManagers({
			modules: [defineModule({ name: "bench", types, controllers })],
			transport: this.#parts.transport,
			runtime: { clock: this.clock, random: seededRandom(1), scheduler: systemScheduler },
			logger: this.#logger(),
		});
		await this.settle();
	}

	async settle(): Promise<void> {
		await this.#parts.cluster.perhapsKill(0.5);
		await this.#becomeIdle();
	}

	async advance(byMs: number): Promise<void> {
		await this.settle();
		for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
			await this.clock.advanceAsync(Math.min(leftMs, stepMs));
			await this.#becomeIdle();
		}
	}

	async #becomeIdle(): Promise<void> {
		const { cluster } = this.#parts;
		const deadlineMs = performance.now() + patienceMs;
		let changes = 0;
		for (let quiet = 0; quiet < quietTurns; ) {
			await new Promise((resolve) => setImmediate(resolve));
			const unfinished = this.#unfinished();
			quiet = unfinished === undefined ? quiet + 1 : 0;
			if (performance.now() > deadlineMs) {
				throw new Error(`the controllers did not become idle: ${unfinished}`);
			}
			if (changes < mostChanges && (await cluster.perhapsKill(0.02))) {
				changes += 1;
				quiet = 0;
			}
		}
		await cluster.check();
	}

	stop(): Promise<void> {
		this.#stopped ??= this.#managers?.stop() ?? Promise.resolve();
		return this.#stopped;
	}

	state(name: string): ControllerState {
		const state = this.#managers?.state().controllers.find((each) => each.name === name);
		if (state === undefined) {
			throw new Error(`no controller ${name}`);
		}
		return state;
	}

	messages(level: string): readonly string[] {
		return this.#log.filter((line) => line.level === level).map((line) => line.message);
	}

	async [Symbol.asyncDispose](): Promise<void> {
		let hasStopped = false;
		const stopped = this.stop().finally(() => {
			hasStopped = true;
		});
		while (!hasStopped) {
			await this.clock.advanceAsync(stepMs);
		}
		await stopped;
		await this.#started.disposeAsync();
	}

	/** What needs neither time nor input, and has not been done, if there is anything. */
	#unfinished(): string | undefined {
		const { calls, cluster, service } = this.#parts;
		if (calls.pending !== cluster.heldCalls) {
			return `${calls.pending} calls have no response, and ${cluster.heldCalls} are held`;
		}
		for (const type of types.map((each) => nameOf(each.type))) {
			const open = calls.open(type);
			if (open.length !== service.openWatches(type)) {
				return `${open.length} watches of ${type} are open, and servers have ${service.openWatches(type)}`;
			}
			const late = open.find((watch) => !service.isStalled(watch) && !service.isReceived(watch));
			if (late !== undefined) {
				return `a watch of ${type} has received ${late.received} of ${service.newestVersion(type)}`;
			}
		}
		return undefined;
	}

	#logger(): Logger {
		const line =
			(level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
				this.#log.push({ level, message, fields });
			};
		return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
	}
}

async function openParts(
	{ seed, fault }: AgentBenchOptions,
	started: AsyncDisposableStack,
): Promise<Parts> {
	const calls = new ControllerCalls();
	const { service, user, leases, serviceClock } = await openService(calls, fault, started);
	const random = seededRandom(seed);
	const cluster = started.use(await KilledCluster.start({ service, leases, calls, random }));
	const faulty = fault?.controllers;
	const transport = createPlinthTransport({
		baseUrl: cluster.address,
		interceptors: [...(faulty ? [faulty] : []), calls.interceptor],
	});
	started.defer(() => transport.close());
	return { service, user, serviceClock, calls, cluster, transport };
}

/** The service of both servers, on one storage. */
async function openService(
	calls: ControllerCalls,
	fault: Fault | undefined,
	started: AsyncDisposableStack,
) {
	const serviceClock = new FakeClock();
	const runtime = { clock: serviceClock, random: seededRandom(1), scheduler: systemScheduler };
	const leases = new LocalLeases("bench");
	const timedLeases = new LocalTimedLeases({ leases, clock: serviceClock, isFirst: true });
	started.defer(() => timedLeases.close());
	const backend = createMemoryBackend({ runtime, leases });
	started.defer(() => backend.close());
	await ensureDefaultTenancy(backend, runtime);
	const served = createResourceService({
		...{ backend, runtime, authorizer: insecureAllowAll },
		registry: new TypeRegistry([Partition, Namespace, Tombstone, ...types]),
	});
	const service = new StalledService(served, (request) => {
		const open = request.type === undefined ? [] : calls.open(nameOf(request.type));
		return fault?.servers?.(request, open) ?? request;
	});
	const user = createInProcessClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, served)),
	);
	const leaseService = createLeaseService({
		leases: timedLeases,
		suspended: () => undefined,
		accessOf: async () => ({ require: () => {}, mayHold: () => true }),
		stopping: new AbortController().signal,
		clock: serviceClock,
	});
	return { service, user, leases: leaseService, serviceClock };
}

function benchService({ service, user, serviceClock, calls, cluster }: Parts): BenchService {
	const { stalls } = service;
	return {
		watches: calls.watches,
		put: async (resource) => {
			const { resource: stored } = await user.write({ resource });
			if (stored === undefined) {
				throw new Error("the service has not returned what it has stored");
			}
			service.noteCommit(stored.id, stored.version);
			return stored;
		},
		remove: async (id) => {
			const { version } = await user.delete({ id });
			service.noteCommit(id, version);
		},
		stored: async (id) => {
			try {
				return (await user.read({ id })).resource;
			} catch (failure) {
				if (ConnectError.from(failure).code === Code.NotFound) {
					return undefined;
				}
				throw failure;
			}
		},
		shut: (what) => stalls.shut(what),
		failNext: (what, error) => stalls.failNext(what, error),
		breakWatches: (type) => {
			cluster.spare();
			service.breakWatches(type);
		},
		sendUnknown: (type) => {
			cluster.spare();
			service.sendUnknown(nameOf(type));
		},
		// The service sends them at intervals.
		bookmark: () => serviceClock.advance(5_000),
	};
}
