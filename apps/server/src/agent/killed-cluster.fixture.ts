import type { ServiceImpl } from "@connectrpc/connect";
import { LeaseService, ResourceService } from "@plinth/proto";
import { type Random, silentLogger } from "@plinth/runtime";
import { vi } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { type Agent, startAgent } from "./agent.ts";
import type { ControllerCalls } from "./controller-calls.fixture.ts";
import { discoverySource } from "./discovery/discovery-source.ts";
import type { Resolver } from "./discovery/resolver.ts";
import { areReady, KilledServer } from "./killed-server.fixture.ts";
import type { ServerWork, StalledService } from "./stalled-service.fixture.ts";

/** What the servers of a cluster serve. */
export interface ServedServices {
	readonly service: StalledService;
	readonly leases: ServiceImpl<typeof LeaseService>;
}

/** The options of a cluster. */
export interface KilledClusterOptions extends ServedServices {
	/** The calls that the agent gets. */
	readonly calls: ControllerCalls;
	readonly random: Random;
}

const patiently = { timeout: 300_000, interval: 1 } as const;

/** A server, and what it is doing. */
interface WorkingServer {
	readonly server: KilledServer;
	readonly work: ServerWork;
}

function newServer({ service, leases }: ServedServices): WorkingServer {
	const work = { held: 0, watches: 0 };
	const server = new KilledServer((router) => {
		router.service(ResourceService, service.at(work));
		router.service(LeaseService, leases);
	});
	return { server, work };
}

/**
 * Two servers with the same services behind an agent. At random moments, one of them is killed, or one that was killed is
 * replaced by another one at another address, which the agent finds. None is killed
 *
 * - while one of its calls waits for a response: the outcome of a write would be unknown to its reconcile, which would fail
 *   (uncertain-writes.test.ts);
 * - while a part of a snapshot has arrived: the watch would be aborted, and the run of the controller restarted.
 *
 * What is left to happen is what controllers must not notice.
 */
export class KilledCluster implements AsyncDisposable {
	readonly #options: KilledClusterOptions;
	/** The victim stays among them until it is replaced. */
	#servers: readonly WorkingServer[];
	#agent: Agent | undefined;
	/** Whether the agent has found those that run to be ready. */
	#areReady = false;
	#isSpared = false;
	#kills = 0;

	static async start(options: KilledClusterOptions): Promise<KilledCluster> {
		const cluster = new KilledCluster(options);
		await cluster.#start();
		return cluster;
	}

	private constructor(options: KilledClusterOptions) {
		this.#options = options;
		this.#servers = [newServer(options), newServer(options)];
	}

	/** The address of the agent. */
	get address(): string {
		return this.#startedAgent.address;
	}

	/** How often a server was killed. */
	get kills(): number {
		return this.#kills;
	}

	/** How many calls wait at gates of the service, but for watches. */
	get heldCalls(): number {
		return this.#servers.reduce((sum, { work }) => sum + work.held, 0);
	}

	/** Kills no server until `check`: what a test has them send must arrive, once. */
	spare(): void {
		this.#isSpared = true;
	}

	/** Kills a server with that probability, or replaces the one that was killed. Returns whether it did. */
	async perhapsKill(probability: number): Promise<boolean> {
		const chance = this.#options.random.next();
		if (chance >= probability) {
			return false;
		}
		if (this.#running.length < 2) {
			await this.#replace();
			return true;
		}
		const victim = this.#servers[chance < probability / 2 ? 0 : 1];
		// Not an iteration of the event loop passes in between: what is on its way stays there.
		if (victim === undefined || !this.#mayKill(victim)) {
			return false;
		}
		await this.#kill(victim);
		return true;
	}

	/** Finds out whether a server may be killed next: called when nothing is left to do. */
	async check(): Promise<void> {
		this.#areReady = await areReady(this.#startedAgent, this.#running);
		this.#isSpared = false;
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.#agent?.stop();
		await Promise.all(this.#running.map((server) => server.kill()));
	}

	get #running(): readonly KilledServer[] {
		return this.#servers.map(({ server }) => server).filter(({ isRunning }) => isRunning);
	}

	get #startedAgent(): Agent {
		if (this.#agent === undefined) {
			throw new Error("the cluster has not been started");
		}
		return this.#agent;
	}

	async #start(): Promise<void> {
		await Promise.all(this.#servers.map(({ server }) => server.start()));
		const resolver: Resolver = {
			addresses: async (host) => [host],
			services: async () =>
				this.#running.map(({ address }) => ({
					...{ host: "127.0.0.1", port: Number(new URL(address).port) },
				})),
		};
		this.#agent = await startAgent(
			{
				listen: { host: "127.0.0.1", port: 0 },
				servers: [],
				discover: discoverySource("dns:_servers.test"),
				...{ stopLimitMs: 1_000, ...http2OfTests() },
				// The request for a snapshot is sent again at each kill, for as long as a test holds it up.
				forwardingLimits: { attempts: 1_000 },
			},
			{ logger: silentLogger, resolver },
		);
		await this.#whenReady();
	}

	async #whenReady(): Promise<void> {
		await vi.waitUntil(() => areReady(this.#startedAgent, this.#running), patiently);
		this.#areReady = true;
	}

	#mayKill({ work }: WorkingServer): boolean {
		const { calls } = this.#options;
		return (
			this.#areReady &&
			!this.#isSpared &&
			work.held === 0 &&
			calls.pending === this.heldCalls &&
			!calls.watches.some(({ isInSnapshot }) => isInSnapshot)
		);
	}

	/**
	 * The agent finds the death of a server by its connections, and is then told. Calls that begin meanwhile wait: one that is
	 * sent over a connection that is about to end fails, since it may have been executed.
	 */
	async #kill({ server, work }: WorkingServer): Promise<void> {
		const { calls } = this.#options;
		const { promise, resolve } = Promise.withResolvers<void>();
		calls.paused = promise;
		this.#areReady = false;
		this.#kills += 1;
		await server.kill();
		await vi.waitUntil(() => work.watches === 0, patiently);
		await this.#startedAgent.reload();
		await this.#whenReady();
		resolve();
	}

	async #replace(): Promise<void> {
		const replacement = newServer(this.#options);
		await replacement.server.start();
		const survivors = this.#servers.filter(({ server }) => server.isRunning);
		this.#servers = [...survivors, replacement];
		await this.#startedAgent.reload();
		await this.#whenReady();
	}
}
