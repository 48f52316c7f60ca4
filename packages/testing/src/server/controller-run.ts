import {
	type Controller,
	type ControllerManagerOptions,
	createControllerManager,
	type ManagerState,
} from "@plinth/controller";

/** One run of a server's controllers, from start to stop. */
export interface ControllerRun {
	/** Resolves when all have ended. */
	readonly ended: Promise<void>;
	/** Stops all of them. */
	stop(): void;
	state(): ManagerState;
}

/** Starts controllers with their own manager. */
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
