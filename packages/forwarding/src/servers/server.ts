import type { Runtime } from "@plinth/runtime";
import { checkReady } from "./check-ready.ts";
import { type HealthEvents, type HealthOptions, ServerHealth } from "./server-health.ts";
import type { CallPurpose, Connections, Place } from "./server-network.ts";
import type { ServerTarget } from "./server-target.ts";

/** Options of a server. */
export interface ServerOptions {
	readonly target: ServerTarget;
	/** Opens its connections. @param onGoaway - called when it accepts no new calls on one of them. */
	readonly connect: (target: ServerTarget, onGoaway: () => void) => Connections;
	/** This agent, for its health checks. */
	readonly agent: string;
	/** The credential of the agent, as it is now. */
	readonly credential: () => string;
	readonly health: HealthOptions;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	readonly events: HealthEvents;
	/** Whether it gets calls before the first check. */
	readonly isKnown: boolean;
	/** It was removed, and its last call has ended. */
	readonly onUnused: (server: Server) => void;
}

/**
 * One server: its connections, its health, and the number of calls that it handles for this agent.
 *
 * Invariant: after `remove`, it is not checked, and its connections are closed when its last call has ended.
 */
export class Server {
	readonly target: ServerTarget;
	readonly address: string;
	readonly health: ServerHealth;
	readonly #connections: Connections;
	readonly #onUnused: (server: Server) => void;
	#calls = 0;
	#isRemoved = false;

	constructor(options: ServerOptions) {
		const { target, connect, agent, credential, health, runtime, events, isKnown } = options;
		this.target = target;
		this.address = target.address;
		this.#onUnused = options.onUnused;
		this.#connections = connect(target, () => this.health.goawayReceived());
		this.health = new ServerHealth(
			...([health, runtime, events] as const),
			(signal) =>
				checkReady(this.#connections.take("check"), { agent, credential: credential() }, signal),
			isKnown ? "unknown" : "new",
		);
	}

	/** Calls that have not ended. */
	get calls(): number {
		return this.#calls;
	}

	/** Whether it is no longer one of the servers: it gets no new calls, and those that it has may finish. */
	get isRemoved(): boolean {
		return this.#isRemoved;
	}

	/** Takes a place for a call. */
	take(purpose: CallPurpose): Place {
		const place = this.#connections.take(purpose);
		this.#calls += 1;
		return {
			session: () => place.session(),
			leave: () => {
				this.#calls -= 1;
				place.leave();
				this.#closeIfUnused();
			},
		};
	}

	/** It is no longer one of the servers. */
	remove(): void {
		this.#isRemoved = true;
		this.health.close();
		this.#closeIfUnused();
	}

	/** Ends its calls too. */
	close(): void {
		this.health.close();
		this.#connections.close();
	}

	#closeIfUnused(): void {
		if (this.#isRemoved && this.#calls === 0) {
			this.#connections.close();
			this.#onUnused(this);
		}
	}
}
