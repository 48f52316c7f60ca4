import { randomBytes } from "node:crypto";
import type { ConnectionOptions as TlsOptions } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { Deadlines, type Logger, type Runtime } from "@plinth/runtime";
import type { CallEnvironment, CallMethod, Outcome, RetryReason } from "./call/call-environment.ts";
import { ForwardedCall } from "./call/forwarded-call.ts";
import { KeptBytes } from "./call/kept-bytes.ts";
import { respondWithError } from "./errors/error-response.ts";
import type { InboundCall } from "./inbound-call.ts";
import { defaultForwardingLimits, type ForwardingLimits } from "./limits.ts";
import { ListServers } from "./pages/list-servers.ts";
import { ClusterPosition } from "./positions/cluster-position.ts";
import { Server, type ServerOptions } from "./servers/server.ts";
import { ServerConnections } from "./servers/server-connections.ts";
import {
	defaultHealthOptions,
	type HealthOptions,
	type HealthState,
} from "./servers/server-health.ts";
import { type CreateServer, ServerSet } from "./servers/server-set.ts";
import type { ServerTarget } from "./servers/server-target.ts";
import type { WatchMethod } from "./watches/scanned-message.ts";
import type { WriteMethod } from "./writes/write-condition.ts";

/** What a forwarder must know about a method. */
export interface ForwardedMethod {
	/**
	 * Whether it changes nothing, or changes the same if it is called twice: then a call may be sent again. Must be false if it
	 * has a stream of requests.
	 */
	readonly isRepeatable: boolean;
	/** Whether it has a stream of requests or responses. */
	readonly isStream: boolean;
	/**
	 * Whether it reads or writes the storage of the cluster, and takes the header `x-plinth-not-before`: then no response is
	 * older than what the forwarder has passed on before.
	 */
	readonly hasPosition?: boolean;
	/** Whether it is a write that can have a condition: then it may be sent again. */
	readonly write?: WriteMethod;
	/** Whether it is List, whose further pages are requested from the server that has returned the first. */
	readonly hasPages?: boolean;
	/** Whether its requests and responses are those of a watch, which is continued at another server when one is lost. */
	readonly watch?: WatchMethod;
}

/** Counts what a forwarder does. */
export interface ForwardingObserver {
	/** A call has ended. `refused`: it was not forwarded, because there are too many or the agent stops. */
	callEnded(outcome: Outcome | "refused"): void;
	callRetried(reason: RetryReason): void;
	/** A watch that was cut off is requested from another server. */
	watchMoved(): void;
	/** A server gets no calls for now. */
	serverEjected(address: string): void;
}

/** Options of `createForwarder`. */
export interface ForwarderOptions {
	/**
	 * The URLs of the servers at the beginning: scheme, host and port. They get calls at once. There may be none: then calls
	 * fail with Unavailable until `setServers` has set some, and one of them is ready.
	 */
	readonly servers: readonly string[];
	/** What is known about the method of a path, such as `/plinth.resource.v1.ResourceService/Read`. */
	readonly methodOf: (path: string) => ForwardedMethod | undefined;
	/** Limits that differ from the defaults. */
	readonly limits?: Partial<ForwardingLimits>;
	readonly health?: Partial<HealthOptions>;
	/** How servers with `https` are verified. */
	readonly tls?: TlsOptions;
	/** The credential by which servers know that an agent calls them, as it is now; empty if they require none. */
	readonly credential?: () => string;
	readonly observer: ForwardingObserver;
	readonly logger: Logger;
	readonly runtime: Pick<Runtime, "clock" | "random">;
}

/** What is known about one server. */
export interface ServerStatus {
	readonly address: string;
	readonly state: HealthState;
	/** The last thing that went wrong. */
	readonly lastError: string;
	/** Calls that this agent forwards to it. */
	readonly calls: number;
	/** Whether it was removed, and is listed only because calls to it have not ended. */
	readonly isRemoved: boolean;
}

/** The newest version that clients have been shown. */
export interface ForwarderPosition {
	readonly newest: number;
	/** How often the storage was found to be another one, whose versions are lower. */
	readonly replaced: number;
	/** Something of this version is shown to a client: no response that is forwarded later is older. */
	shown(version: number): void;
}

/** Forwards calls to servers. */
export interface Forwarder {
	/**
	 * Forwards a call, and responds to it in any case. Does not throw.
	 *
	 * @param refusal - responds with this error instead.
	 */
	forward(call: InboundCall, refusal?: ConnectError): void;
	/**
	 * Forwards a call of the agent itself. Clients take nothing from such calls: `limits.calls` does not count or refuse them, they
	 * have connections and memory of their own, and `endStreams` and `endCalls` do not end them.
	 */
	forwardOwn(call: InboundCall): void;
	/** Whether at least one server is healthy. */
	readonly isReady: boolean;
	/** Calls that have not ended. */
	readonly calls: number;
	/** What clients have been shown: of all that they get in other ways, the forwarder must be told. */
	readonly position: ForwarderPosition;
	status(): readonly ServerStatus[];
	/**
	 * Replaces the servers. One that is added is checked before it gets calls. One that is removed gets no new calls: its calls
	 * finish, its watches go on at other servers, and its connections are closed when the last of them has ended. A server
	 * that stays is not affected.
	 */
	setServers(servers: readonly ServerTarget[]): void;
	/** Ends the streams of clients, so that they open them elsewhere; all other calls continue. */
	endStreams(error: ConnectError): void;
	/** Ends all calls of clients. */
	endCalls(error: ConnectError): void;
	/** Ends all calls, closes all connections to servers and stops all checks. */
	close(): void;
}

/** The number of servers that an error names. */
const namedServers = 10;

/**
 * All calls can go to one server if it accepts so many on a connection. A server that accepts fewer, which is unusual, gets
 * fewer calls in total.
 */
const leastCallsPerConnection = 40;

/** Creates a forwarder and begins to check its servers. */
export function createForwarder(options: ForwarderOptions): Forwarder {
	const { tls = {}, runtime, limits } = options;
	const { calls } = { ...defaultForwardingLimits, ...limits };
	return createForwarderOn(options, ({ address, certificateName }, onGoaway) => {
		const named = certificateName === undefined ? tls : { ...tls, servername: certificateName };
		return new ServerConnections({
			authority: address,
			tls: named,
			runtime,
			onGoaway,
			maxConnections: Math.ceil(calls / leastCallsPerConnection),
		});
	});
}

/** Creates a forwarder over a network: that of HTTP/2, or a simulated one. */
export function createForwarderOn(
	options: ForwarderOptions,
	connect: ServerOptions["connect"],
): Forwarder {
	return new ServerForwarder(options, connect);
}

class ServerForwarder implements Forwarder {
	readonly #options: ForwarderOptions;
	readonly #limits: ForwardingLimits;
	readonly #servers: ServerSet;
	readonly #environment: CallEnvironment;
	/** For the agent's own calls. */
	readonly #ownEnvironment: CallEnvironment;
	/** Those of clients. */
	readonly #calls = new Set<ForwardedCall>();
	/** Those of the agent itself. */
	readonly #ownCalls = new Set<ForwardedCall>();

	constructor(options: ForwarderOptions, connect: ServerOptions["connect"]) {
		const { servers, credential = () => "", observer, logger, runtime } = options;
		this.#options = options;
		this.#limits = { ...defaultForwardingLimits, ...options.limits };
		const agent = `agent-${randomBytes(9).toString("base64url")}`;
		const health = { ...defaultHealthOptions, ...options.health };
		const create: CreateServer = (target, isKnown, onUnused) => {
			const { address } = target;
			return new Server({
				...{ target, connect, agent, credential, health, runtime, isKnown, onUnused },
				events: {
					ejected: (reason) => {
						observer.serverEjected(address);
						logger.warn({ server: address, reason }, "a server gets no calls for now");
					},
					returned: () => {
						logger.info({ server: address }, "a server is ready");
						this.#leaveRemovedServers();
					},
				},
			});
		};
		this.#servers = new ServerSet(
			servers.map((address) => ({ address })),
			create,
		);
		this.#environment = {
			...{ purpose: "call", agent, credential },
			limits: this.#limits,
			...this.#newMemory(),
			position: new ClusterPosition(),
			lists: new ListServers(this.#limits.lists),
			...{ clock: runtime.clock, random: runtime.random },
			deadlines: new Deadlines(runtime.clock),
			logger,
			choose: (tried) => this.#servers.choose(tried),
			noServer: () => this.#noServer(),
			retried: (reason) => observer.callRetried(reason),
			watchMoved: () => observer.watchMoved(),
		};
		this.#ownEnvironment = { ...this.#environment, purpose: "own", ...this.#newMemory() };
		for (const server of this.#servers.servers) {
			server.health.start();
		}
	}

	#newMemory(): Pick<CallEnvironment, "memory" | "watchRequests"> {
		const { keptBytesInTotal } = this.#limits;
		return {
			memory: new KeptBytes(keptBytesInTotal),
			watchRequests: new KeptBytes(keptBytesInTotal),
		};
	}

	get isReady(): boolean {
		return this.#servers.servers.some(({ health }) => health.state === "healthy");
	}

	get calls(): number {
		return this.#calls.size + this.#ownCalls.size;
	}

	get position(): ForwarderPosition {
		return this.#environment.position;
	}

	forward(call: InboundCall, refusal = this.#refusal()): void {
		if (refusal !== undefined) {
			this.#options.observer.callEnded("refused");
			try {
				respondWithError(call, refusal);
			} catch {
				// The client is gone.
			}
			return;
		}
		this.#start(call, this.#environment, this.#calls);
	}

	forwardOwn(call: InboundCall): void {
		this.#start(call, this.#ownEnvironment, this.#ownCalls);
	}

	#start(call: InboundCall, environment: CallEnvironment, calls: Set<ForwardedCall>): void {
		const forwarded: ForwardedCall = new ForwardedCall(
			...([environment, call, this.#methodOf(call)] as const),
			(outcome) => {
				calls.delete(forwarded);
				this.#options.observer.callEnded(outcome);
			},
		);
		calls.add(forwarded);
		forwarded.start();
	}

	status(): readonly ServerStatus[] {
		const { servers, leaving } = this.#servers;
		return [...servers, ...leaving].map(({ address, health, calls, isRemoved }) => ({
			...{ address, calls, isRemoved },
			state: health.state,
			lastError: health.lastError,
		}));
	}

	setServers(targets: readonly ServerTarget[]): void {
		const { added, removed } = this.#servers.replace(targets);
		if (added.length === 0 && removed.length === 0) {
			return;
		}
		const addresses = (servers: readonly Server[]) => servers.map(({ address }) => address);
		this.#options.logger.info(
			{ added: addresses(added), removed: addresses(removed) },
			"the servers have changed",
		);
		for (const server of added) {
			server.health.start();
		}
		this.#leaveRemovedServers();
	}

	endStreams(error: ConnectError): void {
		for (const call of [...this.#calls]) {
			if (call.isStream) {
				call.fail(error);
			}
		}
	}

	endCalls(error: ConnectError): void {
		for (const call of [...this.#calls]) {
			call.stop(error);
		}
	}

	close(): void {
		const error = new ConnectError("the agent has stopped", Code.Unavailable);
		for (const call of [...this.#calls, ...this.#ownCalls]) {
			call.stop(error);
		}
		this.#servers.close();
	}

	/** Watches leave servers that were removed, as far as another server can be called. */
	#leaveRemovedServers(): void {
		if (this.#servers.leaving.length > 0) {
			for (const call of [...this.#calls, ...this.#ownCalls]) {
				call.leaveRemovedServer();
			}
		}
	}

	#refusal(): ConnectError | undefined {
		const { calls } = this.#limits;
		return this.#calls.size < calls
			? undefined
			: new ConnectError(
					`the agent forwards at most ${calls} calls at the same time (limits.calls): try again later`,
					Code.ResourceExhausted,
				);
	}

	#methodOf({ method, target }: InboundCall): CallMethod {
		const end = target.indexOf("?");
		const known = this.#options.methodOf(end === -1 ? target : target.slice(0, end));
		// HTTP defines these as safe, and Connect uses GET only for methods without side effects.
		const isSafe = method === "GET" || method === "HEAD" || method === "OPTIONS";
		return {
			isRepeatable: isSafe || known?.isRepeatable === true,
			isStream: known?.isStream === true,
			isUnary: known?.isStream === false,
			hasPosition: known?.hasPosition === true,
			hasPages: known?.hasPages === true,
			...(known?.watch && { watch: known.watch }),
			...(known?.write && { write: known.write }),
		};
	}

	#noServer(): string {
		const { servers } = this.#servers;
		if (servers.length === 0) {
			return "the agent knows no server";
		}
		for (const { health } of servers) {
			health.checkSoon();
		}
		const named = servers.slice(0, namedServers).map(({ address, health }) => {
			const { lastError } = health;
			return lastError.startsWith(address) ? lastError : `${address}: ${lastError}`;
		});
		const more = servers.length - namedServers;
		return `${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
	}
}
