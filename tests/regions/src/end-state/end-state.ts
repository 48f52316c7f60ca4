import type { Key, Seen } from "../history/history.ts";

/** A reference as a shadow records it. */
export interface RecordedReference {
	readonly target: Key;
	readonly targetUid: string;
}

/** A shadow as it was read. */
export interface ShadowSeen {
	/** The resource that it is of. */
	readonly key: Key;
	readonly uid: string;
	/** As in `LIFECYCLE_ACTIVE`. */
	readonly lifecycle: string;
	readonly outgoing: readonly RecordedReference[];
	/** The deployments that reference it, as in `devices-us-west2`. */
	readonly sources: readonly { readonly deployment: string; readonly tentative: boolean }[];
	/** The deployments that have resources which it owns. */
	readonly ownees: readonly string[];
	/** The uids of its owners. */
	readonly owners: readonly string[];
	/** What is left to be done, as in `confirm`. */
	readonly tasks: readonly string[];
}

/** A resource with the deployment that keeps it, as in `devices-us-west2`. */
export interface Kept {
	readonly key: Key;
	readonly deployment: string;
	readonly seen: Seen;
}

/** All that the servers tell after the load. */
export interface EndState {
	readonly resources: readonly Kept[];
	readonly shadows: readonly ShadowSeen[];
}
