import { type ControllerManager, createControllerManager } from "@plinth/controller";
import type { TypeRegistry } from "@plinth/resource";
import type { LeaseManager, Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import {
	createLocalReaper,
	createLocalTenancyDeletion,
	createReaper,
	createTenancyDeletion,
	type TenancyDeletionOptions,
} from "@plinth/system-controllers";
import type { Module } from "../module/define-module.ts";
import type { Interfaces } from "../services/register-services.ts";

/** Options of `startControllers`. */
export interface ControllersOptions {
	readonly interfaces: Pick<Interfaces, "trustedShared" | "trustedCloned">;
	readonly backend: Pick<StorageBackend, "countByTypeIn">;
	/** Whether other servers, possibly with other modules, share the storage. */
	readonly isShared: boolean;
	readonly registry: TypeRegistry;
	readonly modules: readonly Module[];
	readonly leases: LeaseManager;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called if the controllers can't continue. */
	readonly onFailure: (failure: unknown) => void;
}

/** Running controllers. */
export interface RunningControllers {
	readonly manager: ControllerManager;
	/** Stops all controllers, and resolves when they have stopped. */
	stop(): Promise<void>;
}

/** Starts the controllers of the server and of its modules. */
export function startControllers(options: ControllersOptions): RunningControllers {
	const { interfaces, backend, isShared, registry, modules, leases, runtime, logger } = options;
	const manager = createControllerManager({
		client: interfaces.trustedShared,
		cloningClient: interfaces.trustedCloned,
		runtime,
		leases,
		logger,
	});
	const known: TenancyDeletionOptions = {
		types: () => registry.all(),
		census: (unit) => backend.countByTypeIn(unit, { consistency: "strong" }),
	};
	const systemControllers = [
		createReaper(known),
		...createTenancyDeletion(known),
		...(isShared ? [createLocalReaper(known), ...createLocalTenancyDeletion(known)] : []),
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
