import type { Route } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { CallerAuthenticator } from "@plinth/resource-service";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { Guards } from "../commit/guards.ts";
import type { Turns } from "../commit/turns.ts";
import type { DroppedDeployments } from "../protocol/dropped-deployments.ts";
import type { Environment } from "../registry/environment.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { HeldDeletions } from "../shadow/held-deletions.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import type { ShadowIndex } from "../shadow/shadow-index.ts";
import type { WaitingAges } from "../shadow/waiting-ages.ts";
import type { ConstraintLimits } from "./limits.ts";

/** A target that a deployment may no longer reference. */
export interface ReferenceRelease {
	readonly deploymentUid: string;
	readonly target: KeyLike;
	readonly targetUid: string;
}

/** The reports of a deployment that it may no longer reference resources of this one. */
export interface ReportedReleases {
	readonly route: Route;
	readonly releases: readonly {
		readonly target?: KeyLike | undefined;
		readonly targetUid: string;
	}[];
}

/** A target that is being deleted. */
export interface Deletion {
	/** The uid of the deployment that stores it, and has announced the deletion. */
	readonly deploymentUid: string;
	readonly target: KeyLike;
	readonly targetUid: string;
}

/** The dependencies that all parts of the constraints of one server share. */
export interface ConstraintContext {
	/** The undecorated storage: commits to it are not checked. */
	readonly backend: StorageBackend;
	readonly descriptor: ServiceDescriptor;
	readonly environment: Environment;
	readonly index: ShadowIndex;
	readonly deletions: HeldDeletions;
	readonly ages: Pick<WaitingAges, "ageMs">;
	readonly guards: Guards;
	readonly dropped: DroppedDeployments;
	/** The establishments of this server, by the name of the target's shadow, which each of them writes. */
	readonly establishments: Turns;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly limits: ConstraintLimits;
	/** Authenticates the callers that other deployments send. Default: all are accepted. */
	readonly callers?: CallerAuthenticator | undefined;
	/** Delivers hints. They may be lost. */
	readonly hints: QueryHints;
}

/** Hints that a holder query may be worthwhile. Bounded: excess hints are dropped. */
export interface QueryHints {
	/** This deployment may no longer reference targets of other deployments. */
	released(releases: readonly ReferenceRelease[]): void;
	/**
	 * Another deployment may no longer reference resources of this one: query it. Passes on what concerns shadows that this
	 * server does not control, unless another server has passed it on.
	 */
	reported(request: ReportedReleases, isForwarded: boolean): void;
	/**
	 * A target of a reference of this deployment is irrevocably being deleted. The other servers of this deployment are told,
	 * if something there may depend on it.
	 */
	deleting(deletion: Deletion): void;
	/** As `deleting`, if another server of this deployment has told this one. */
	forwarded(deletion: Deletion): void;
}
