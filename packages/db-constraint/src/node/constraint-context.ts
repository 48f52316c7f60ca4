import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReportReleasesRequestSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
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
import type { ConstraintLimits } from "./limits.ts";

/** A target that a deployment may no longer reference. */
export interface ReferenceRelease {
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
	/** A deployment may no longer reference a resource of this one: query it. */
	queryHolderSoon(shadowName: string, deploymentUid: string): void;
	/** Whether the controllers of references, which need the hints, run on this server. */
	readonly isHeard: boolean;
	/** Passes reports of releases on to the other servers of this deployment. */
	forward(request: MessageInitShape<typeof ReportReleasesRequestSchema>): void;
	/** A target of a reference of this deployment is irrevocably being deleted. */
	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void;
}
