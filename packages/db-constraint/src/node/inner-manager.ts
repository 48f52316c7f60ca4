import {
	type ControllerManagerOptions,
	createControllerManager,
	type ManagerState,
} from "@plinth/controller";
import type { Constraints } from "../constraints.ts";
import { createDbConstraintController } from "./db-constraint-controller.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** The controllers of one version of the service. */
export interface InnerManager {
	readonly version: string;
	/** A report on its controllers. */
	state(): ManagerState;
	/** Ends them; resolves when all that they did has ended. */
	stop(): Promise<void>;
}

/** What an inner manager is made of. */
export interface InnerManagerOptions
	extends Pick<ControllerManagerOptions, "client" | "cloningClient" | "leases"> {
	readonly constraints: Constraints;
	/** Called while a controller takes deletions, on this server. */
	readonly whileRunning: (take: (deletion: Deletion) => void) => () => void;
	/** Called where the controllers failed as a whole. */
	readonly onFailure: (failure: unknown) => void;
}

/** Starts the controllers for a version. */
export function startInnerManager(version: string, options: InnerManagerOptions): InnerManager {
	const { constraints, whileRunning, onFailure, ...clients } = options;
	const { runtime, logger } = constraints.context;
	const manager = createControllerManager({
		...clients,
		runtime,
		logger,
		leaseName: "db-constraint",
	});
	const name = ["db-constraint", version].filter((part) => part).join("-");
	manager.register(createDbConstraintController({ name, constraints, whileRunning }));
	const stop = new AbortController();
	const running = manager.run(stop.signal).catch(onFailure);
	return {
		version,
		state: () => manager.state(),
		async stop() {
			stop.abort();
			await running;
		},
	};
}
