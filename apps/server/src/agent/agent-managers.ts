import { createClient, type Transport } from "@connectrpc/connect";
import {
	type ControllerManager,
	type ControllerReports,
	cachedTypes,
	createControllerManager,
	type ManagerState,
} from "@plinth/controller";
import { RemoteLeases } from "@plinth/leases";
import { LeaseService, ResourceService } from "@plinth/proto";
import { displayName, type EventRecorder, type ResourceType } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { Module } from "../module/define-module.ts";
import { SharedResources } from "./shared-resources.ts";

/** Options of `startManagers`. */
export interface AgentManagersOptions {
	readonly modules: readonly Module[];
	/** Calls the servers. */
	readonly transport: Transport;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** The running controllers of all modules, and reports on them as if they had one manager. */
export interface AgentManagers extends Pick<ControllerReports, "state" | "work"> {
	state(): ManagerState;
	/** Stops all controllers, and resolves when they have stopped and released their leases. */
	stop(): Promise<void>;
}

/**
 * Runs the controllers of modules, with the caches, leases and events that they have in a process which is not a server.
 *
 * - Each module has a lease of its own, so that agents with different modules do not wait for each other.
 * - The caches of all controllers have the same objects.
 */
export function startManagers(options: AgentManagersOptions): AgentManagers {
	const { modules, transport, runtime, logger } = options;
	const shared = new SharedResources(typesOfSeveral(modules));
	const client = shared.client(createClient(ResourceService, transport));
	const leases = new RemoteLeases({
		client: createClient(LeaseService, transport),
		...{ runtime, logger },
	});
	const end = new AbortController();
	const managers = modules.map(({ name, controllers }) => {
		const manager = createControllerManager({
			client,
			leases,
			leaseName: leaseOf(name),
			events: loggedEvents(logger),
			...{ runtime, logger },
		});
		for (const controller of controllers) {
			manager.register(controller);
		}
		return manager;
	});
	const running = managers.map((manager) => manager.run(end.signal));
	return {
		state: () => stateOf(managers),
		work: (controller, limit) => {
			for (const manager of managers) {
				const work = manager.work(controller, limit);
				if (work !== undefined) {
					return work;
				}
			}
			return undefined;
		},
		async stop() {
			end.abort(new Error("the agent is stopping"));
			await Promise.all(running);
		},
	};
}

/** The types that more than one controller caches. */
function typesOfSeveral(modules: readonly Module[]): readonly ResourceType[] {
	const cached = modules.flatMap(({ controllers }) => controllers.flatMap(cachedTypes));
	return [...Map.groupBy(cached, ({ family }) => family).values()]
		.filter(({ length }) => length > 1)
		.flat();
}

function stateOf(managers: readonly ControllerManager[]): ManagerState {
	const states = managers.map((manager) => manager.state());
	return {
		holdsLease: states.every(({ holdsLease }) => holdsLease),
		controllers: states.flatMap(({ controllers }) => controllers),
	};
}

/** The lease of the singletons of a module. Those of its shards begin with it. */
function leaseOf(module: string): string {
	return `agents/${module}`;
}

/** The reason of the events that controllers themselves record, in addition to the log. */
const reconcileFailed = "ReconcileFailed";

/** Events can't be recorded over the API: they go to the log. */
function loggedEvents(logger: Logger): EventRecorder {
	return {
		record({ resource, reason, message, severity = "normal", source }) {
			if (reason !== reconcileFailed) {
				const fields = { resource: displayName(resource), reason, source };
				logger[severity === "warning" ? "warn" : "info"](fields, message);
			}
		},
	};
}
