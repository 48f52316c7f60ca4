import type { Resource } from "@plinth/proto";
import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";

/** A reference of a stored resource, and the incarnation of its target when it was committed. */
export interface TrackedReference {
	readonly path: string;
	readonly target: ResourceKey;
	/** `keyString` of the target. */
	readonly text: string;
	readonly rule: OnDelete;
	/** `unresolved` if a new schema made the field a reference, and its target did not exist, or was not looked up. */
	readonly uid: string;
	/** Whether nothing is promised about its target until it is established again: see `ObservedLosses`. */
	readonly isSuspended?: true;
}

/** The uid of a target that is not looked up yet, or did not exist then, because a schema made the field a reference. */
export const unresolved = "unresolved";

/** A stored resource. */
export interface TrackedResource {
	readonly deployment: SimulatedDeployment;
	/** `keyString` of its key: unique among all deployments. */
	readonly text: string;
	readonly uid: string;
	readonly resource: Resource;
	/**
	 * The schema of its references: the active one, once they are derived by it. There is none as long as a write has left
	 * some for that: they are those by the schema before, though the data is new.
	 */
	readonly schema: SimulatedSchema | undefined;
	readonly references: readonly TrackedReference[];
}
