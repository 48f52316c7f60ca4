import type { Key, ObservedResource } from "../history/history.ts";

/** A reference as a shadow records it. */
export interface RecordedReference {
	readonly target: Key;
	readonly targetUid: string;
}

/** A shadow as read through the API. */
export interface ObservedShadow {
	/** The key of its resource. */
	readonly key: Key;
	readonly uid: string;
	/** For example `LIFECYCLE_ACTIVE`. */
	readonly lifecycle: string;
	readonly outgoing: readonly RecordedReference[];
	/** The deployments that reference it, for example `devices-us-west2`. */
	readonly sources: readonly { readonly deployment: string; readonly tentative: boolean }[];
	/** The deployments that store its ownees. */
	readonly ownees: readonly string[];
	/** The uids of its owners. */
	readonly owners: readonly string[];
	/** The open tasks, for example `confirm`. */
	readonly tasks: readonly string[];
}

/** A resource and the deployment that stores it, for example `devices-us-west2`. */
export interface StoredResource {
	readonly key: Key;
	readonly deployment: string;
	readonly seen: ObservedResource;
}

/** The state of all servers after the load. */
export interface EndState {
	readonly resources: readonly StoredResource[];
	readonly shadows: readonly ObservedShadow[];
}
