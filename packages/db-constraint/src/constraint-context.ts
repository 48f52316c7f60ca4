import type { CallerAuthenticator } from "@plinth/resource-service";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { Environment } from "./environment.ts";
import type { Guards } from "./guards.ts";
import type { ConstraintLimits } from "./limits.ts";
import type { KeyLike } from "./resource-key.ts";
import type { ServiceDescriptor } from "./service-descriptor.ts";
import type { ShadowIndex } from "./shadow-index.ts";

/** A target that a deployment may no longer reference. */
export interface Release {
	readonly deploymentUid: string;
	readonly target: KeyLike;
	readonly targetUid: string;
}

/** What all parts of the constraints of one server share. */
export interface ConstraintContext {
	/** The storage below: what is committed there is not checked. */
	readonly backend: StorageBackend;
	readonly descriptor: ServiceDescriptor;
	readonly environment: Environment;
	readonly index: ShadowIndex;
	readonly guards: Guards;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly limits: ConstraintLimits;
	/** Decides on the callers that other deployments send; absent: all of them are accepted. */
	readonly callers?: CallerAuthenticator | undefined;
	/** Passes hints on to those who may want to ask. They may get lost. */
	readonly hints: Hints;
}

/** Hints: that something may be worth a question. Bounded; what does not fit is forgotten. */
export interface Hints {
	/** This deployment may no longer reference targets of others. */
	released(releases: readonly Release[]): void;
	/** A deployment may no longer reference a resource of this one. */
	queryHolderSoon(shadowName: string, deploymentUid: string): void;
	/** A target of a reference of this deployment is being deleted for good. */
	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void;
}
