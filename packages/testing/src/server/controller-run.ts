import {
	type Controller,
	type ControllerManagerOptions,
	createControllerManager,
	type ManagerState,
} from "@plinth/controller";

/** A life of a server's controllers. */
export interface ControllerRun {
	/** Resolves when all have ended. */
	readonly ended: Promise<void>;
	/** Tells all to stop. */
	stop(): void;
	state(): ManagerState;
}

/** Starts controllers under a manager of their own. */
export function runControllers(
	controllers: readonly Controller[],
	options: ControllerManagerOptions,
): ControllerRun {
	const manager = createControllerManager(options);
	for (const controller of controllers) {
		manager.register(controller);
	}
	const stop = new AbortController();
	return {
		ended: manager.run(stop.signal),
		stop: () => stop.abort(new Error("the controllers of the test server are stopped")),
		state: () => manager.state(),
	};
}
