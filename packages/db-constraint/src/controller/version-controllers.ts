import {
	type ControllerManagerOptions,
	type ControllerReports,
	createControllerManager,
	type Share,
} from "@plinth/controller";
import type { Constraints } from "../node/constraints.ts";
import { createDbConstraintController } from "./db-constraint-controller.ts";

/** The controllers of one version of the service. */
export interface VersionControllers {
	readonly version: string;
	/** On its controllers. */
	readonly reports: ControllerReports;
	/** Stops the controllers; resolves when all their work has ended. */
	stop(): Promise<void>;
}

/** Options of `startVersionControllers`. */
export interface VersionControllersOptions
	extends Pick<ControllerManagerOptions, "client" | "cloningClient" | "leases" | "events"> {
	readonly constraints: Constraints;
	/** See `DbConstraintOptions`. */
	readonly whileRunning: (share: Share) => () => void;
	/** Called if the controller manager fails. */
	readonly onFailure: (failure: unknown) => void;
}

/** Starts the controllers of a version. */
export function startVersionControllers(
	version: string,
	options: VersionControllersOptions,
): VersionControllers {
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
		reports: manager,
		async stop() {
			stop.abort();
			await running;
		},
	};
}
