import { type ControllerManager, createControllerManager } from "@plinth/controller";
import type { EventRecorder, TypeRegistry } from "@plinth/resource";
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
import { ModuleError } from "../module/load-module.ts";
import type { Interfaces } from "../services/register-services.ts";

/** Options of `startControllers`. */
export interface ControllersOptions {
	readonly interfaces: Pick<Interfaces, "trustedShared" | "trustedCloned">;
	readonly backend: Pick<StorageBackend, "countByTypeIn">;
	/** Whether other servers, possibly with other modules, share the storage. */
	readonly isShared: boolean;
	readonly registry: TypeRegistry;
	/** The region of the server's deployment, if it is part of one. */
	readonly region: string | undefined;
	readonly modules: readonly Module[];
	readonly leases: LeaseManager;
	readonly events: EventRecorder;
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

/**
 * Starts the controllers of the server and of its modules, which `checkControllers` has checked.
 *
 * @throws ModuleError if a module's controller has the name of one of the server.
 */
export function startControllers(options: ControllersOptions): RunningControllers {
	const { interfaces, backend, isShared, registry, modules, leases, events, runtime, logger } =
		options;
	const manager = createControllerManager({
		client: interfaces.trustedShared,
		cloningClient: interfaces.trustedCloned,
		region: options.region,
		runtime,
		leases,
		events,
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
	for (const controller of systemControllers) {
		manager.register(controller);
	}
	for (const { name, controllers } of modules) {
		for (const controller of controllers) {
			if (systemControllers.some((each) => each.name === controller.name)) {
				throw new ModuleError(
					`module ${name}: controller ${controller.name}: the server has a controller of this name: rename it`,
				);
			}
			manager.register(controller);
		}
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
