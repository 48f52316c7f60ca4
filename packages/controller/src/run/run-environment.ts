import type { EventRecorder } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Controller } from "../define/controller.ts";
import type { EndlessChain, WriteChains } from "../queue/write-chains.ts";
import type { ControllerLimits } from "./limits.ts";
import type { ReconcileTally } from "./reconcile-tally.ts";

/** The parts that all runs of a controller share. */
export interface RunEnvironment {
	readonly controller: Controller;
	/** For watches: returns shared objects. */
	readonly client: ResourceClient;
	/** For the controller's code: copies requests and responses. */
	readonly cloningClient: ResourceClient;
	/** The region of the service, if it has one. */
	readonly region?: string | undefined;
	readonly runtime: Runtime;
	/** Adds the controller's name to each line. */
	readonly logger: Logger;
	readonly limits: ControllerLimits;
	readonly tally: ReconcileTally;
	readonly events: EventRecorder;
	/** Those of all controllers of the manager. */
	readonly chains: WriteChains;
	/** Reconciles trigger each other without an end. */
	readonly onEndlessChain: (chain: EndlessChain) => void;
}
