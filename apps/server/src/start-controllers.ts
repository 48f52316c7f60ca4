import { type ControllerManager, createControllerManager } from "@plinth/controller";
import type { TypeRegistry } from "@plinth/resource";
import type { LeaseManager, Logger, Runtime } from "@plinth/runtime";
import { createReaper, createTenancyDeletion } from "@plinth/system-controllers";
import type { Interfaces } from "./interfaces.ts";
import type { Module } from "./module/define-module.ts";

/** Whom the controllers work with. */
export interface ControllersOptions {
	readonly interfaces: Pick<Interfaces, "trustedShared" | "trustedCloned">;
	readonly registry: TypeRegistry;
	readonly modules: readonly Module[];
	readonly leases: LeaseManager;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called where they can't go on. */
	readonly onFailure: (failure: unknown) => void;
}

/** Controllers that run. */
export interface RunningControllers {
	readonly manager: ControllerManager;
	/** Ends them, and resolves when all have ended. */
	stop(): Promise<void>;
}

/** Starts the controllers of the server and of its modules. */
export function startControllers(options: ControllersOptions): RunningControllers {
	const { interfaces, registry, modules, leases, runtime, logger } = options;
	const manager = createControllerManager({
		client: interfaces.trustedShared,
		cloningClient: interfaces.trustedCloned,
		runtime,
		leases,
		logger,
	});
	const systemControllers = [
		createReaper(),
		...createTenancyDeletion({ types: () => registry.all() }),
	];
	const controllersOfModules = modules.flatMap((module) => module.controllers);
	for (const controller of [...systemControllers, ...controllersOfModules]) {
		manager.register(controller);
	}
	const end = new AbortController();
	const managing = manager.run(end.signal).catch(options.onFailure);
	return {
		manager,
		async stop() {
			end.abort();
			await managing;
		},
	};
}
