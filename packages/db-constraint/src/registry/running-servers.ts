import { isPlanted } from "../fault-points.ts";
import type { Endpoints } from "../shadow/endpoint-addresses.ts";
import { compareVersions } from "../shadow/versions.ts";

/** The running servers of a deployment, as one of them has named them. */
export interface NamedServers {
	readonly addresses: readonly string[];
	/** The version of that deployment's storage at which these were running; empty if it was not named. */
	readonly version: string;
}

/** The servers of this deployment. */
export interface OwnServers extends NamedServers {
	readonly endpoints: Endpoints;
}

const none: NamedServers = { addresses: [], version: "" };

/**
 * The running servers of other deployments, by uid. They are named in calls and responses, which may be late, and by the
 * servers of this deployment, which share what they have learned in its storage.
 *
 * Invariant: what was named by a version of the storage is replaced only by what was named by that or a later one, or
 * by none: servers that are older than these versions name what they see.
 */
export class RunningServers {
	readonly #byUid = new Map<string, NamedServers>();
	#revision = 0;

	/** Grows when other servers are known than before. */
	get revision(): number {
		return this.#revision;
	}

	/** The servers that are known. */
	of(uid: string): NamedServers {
		return this.#byUid.get(uid) ?? none;
	}

	/** The deployment is no longer known. */
	forget(uid: string): void {
		this.#byUid.delete(uid);
	}

	/** A deployment names its servers. Returns whether others are known now. */
	learn(uid: string, { addresses, version }: NamedServers): boolean {
		const known = this.of(uid);
		const named = { addresses: addresses.toSorted(), version: version || known.version };
		if (compareVersions(named.version, known.version) < 0) {
			return false;
		}
		this.#set(uid, named);
		return !isSame(named, known);
	}

	/** Whether something newer is stored than what is known, or anything where nothing is known. */
	isNewer(uid: string, { version }: NamedServers): boolean {
		const known = this.of(uid);
		return known.addresses.length === 0 || compareVersions(version, known.version) > 0;
	}

	/**
	 * Takes what some server of this deployment has stored, unless that is older. Returns whether it is older, and other
	 * servers are known: then the storage lacks them.
	 */
	takeStored(uid: string, { addresses, version }: NamedServers): boolean {
		const known = this.of(uid);
		const stored = { addresses: addresses.toSorted(), version };
		if (isPlanted("learn no servers from other servers of the deployment")) {
			return !isSame(stored, known);
		}
		const namesNone = version === "" && addresses.length === 0;
		if (namesNone || compareVersions(version, known.version) < 0) {
			return !isSame(stored, known);
		}
		this.#set(uid, stored);
		return false;
	}

	#set(uid: string, servers: NamedServers): void {
		if (!isSame(servers, this.of(uid))) {
			this.#revision += 1;
		}
		this.#byUid.set(uid, servers);
	}
}

function isSame(a: NamedServers, b: NamedServers): boolean {
	return a.addresses.join() === b.addresses.join();
}
