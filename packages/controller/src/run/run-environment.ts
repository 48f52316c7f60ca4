import type { Logger, Runtime } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Controller } from "../define/controller.ts";
import type { ControllerLimits } from "./limits.ts";
import type { ReconcileTally } from "./reconcile-tally.ts";

/** What all runs of a controller share. */
export interface RunEnvironment {
	readonly controller: Controller;
	/** For watches: answers the shared objects. */
	readonly client: ResourceClient;
	/** For the controller's own code: copies both ways. */
	readonly cloningClient: ResourceClient;
	readonly runtime: Runtime;
	/** Carries the controller's name. */
	readonly logger: Logger;
	readonly limits: ControllerLimits;
	readonly tally: ReconcileTally;
}
