import { chooseServer } from "./choose-server.ts";
import type { Server } from "./server.ts";
import { getsCalls } from "./server-health.ts";
import { isSameTarget, type ServerTarget } from "./server-target.ts";

/** Creates a server of a set. @param isKnown - whether it gets calls before the first check. */
export type CreateServer = (
	target: ServerTarget,
	isKnown: boolean,
	onUnused: (server: Server) => void,
) => Server;

/** What a change of the set has changed. */
export interface ServerChanges {
	readonly added: readonly Server[];
	readonly removed: readonly Server[];
}

/**
 * The servers of a forwarder, which may change while it runs.
 *
 * ```
 *           added ──first check──▶ gets calls ──removed──▶ leaving ──its last call ends──▶ closed
 * ```
 *
 * Invariants:
 *
 * - A server is chosen for a call only while it is in the set, and if it was added, only after a check has found that it is
 *   ready.
 * - A server that stays in the set keeps its connections, its health and its calls.
 * - A server that was removed is closed when its last call has ended. If its address is added again, that is another server,
 *   which is checked first.
 */
export class ServerSet {
	readonly #create: CreateServer;
	#servers: readonly Server[];
	/** Servers that were removed, and whose calls have not ended. */
	readonly #leaving = new Set<Server>();
	/** The position of the server that the next call prefers among equal ones. */
	#next = 0;

	/** @param targets - of the servers at the beginning, which get calls at once. */
	constructor(targets: readonly ServerTarget[], create: CreateServer) {
		this.#create = create;
		this.#servers = distinct(targets).map((target) => this.#add(target, true));
	}

	/** The servers that are in the set. */
	get servers(): readonly Server[] {
		return this.#servers;
	}

	/** The servers that were removed, and whose calls have not ended. */
	get leaving(): readonly Server[] {
		return [...this.#leaving];
	}

	/** Replaces the set. The servers that are added must be checked. */
	replace(targets: readonly ServerTarget[]): ServerChanges {
		const before = this.#servers;
		const next = distinct(targets).map(
			(target) =>
				before.find((server) => isSameTarget(server.target, target)) ?? this.#add(target, false),
		);
		this.#servers = next;
		const added = next.filter((server) => !before.includes(server));
		const removed = before.filter((server) => !next.includes(server));
		for (const server of removed) {
			this.#leaving.add(server);
			server.remove();
		}
		return { added, removed };
	}

	/** The server for a call; `undefined` if none can be used. */
	choose(tried: ReadonlySet<Server>): Server | undefined {
		if (tried.size === 0 && this.#servers.length > 0) {
			this.#next = (this.#next + 1) % this.#servers.length;
		}
		return chooseServer(this.#servers, tried, this.#next);
	}

	/** Closes all servers, with the calls of those that are leaving. */
	close(): void {
		for (const server of [...this.#servers, ...this.#leaving]) {
			server.close();
		}
	}

	#add(target: ServerTarget, isKnown: boolean): Server {
		return this.#create(target, isKnown, (server) => this.#leaving.delete(server));
	}
}

/** Whether a server of the set can be called now: one that was removed can't be. */
export function isUsable(server: Server): boolean {
	return !server.isRemoved && getsCalls(server.health.state);
}

function distinct(targets: readonly ServerTarget[]): readonly ServerTarget[] {
	return targets.filter(
		(target, index) => targets.findIndex((each) => each.address === target.address) === index,
	);
}
