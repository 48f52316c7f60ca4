import { createResourceServiceCloningClient } from "@plinth/proto";
import {
	type LeaseManager,
	type Logger,
	type Runtime,
	silentLogger,
	systemRuntime,
} from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Controller } from "../define/controller.ts";
import { type ControllerLimits, defaultLimits } from "../run/limits.ts";
import { withFields } from "../run/log-fields.ts";
import { ReconcileTally } from "../run/reconcile-tally.ts";
import { checkController } from "./check-controller.ts";
import type { ManagerState } from "./controller-state.ts";
import { type DependencyGraph, dependencyGraph } from "./dependency-graph.ts";
import { aborted, SharedLease } from "./shared-lease.ts";
import { Supervisor } from "./supervisor.ts";

/** What a manager is made with. */
export interface ControllerManagerOptions {
	/**
	 * The resource service, with full rights. What it answers is cached as it is: in a server it
	 * answers the stored objects themselves.
	 */
	readonly client: ResourceClient;
	/**
	 * The client that reconcilers work with: it must copy what it takes and answers. By default it is
	 * made from `client`.
	 */
	readonly cloningClient?: ResourceClient;
	/** The machine's by default. */
	readonly runtime?: Runtime;
	/**
	 * Where the lease of singletons comes from. Without it, this is taken to be the only server: they
	 * always run, and their writes are not fenced.
	 */
	readonly leases?: LeaseManager;
	/** The name of the lease; `controllers` by default. */
	readonly leaseName?: string;
	/** Nothing is logged by default. */
	readonly logger?: Logger;
	/** What is left out has its default. */
	readonly limits?: Partial<ControllerLimits>;
}

/** Runs controllers. */
export interface ControllerManager {
	/**
	 * Adds a controller.
	 *
	 * @throws Error that names the controller, where it can't be run, one of its name is there
	 * already, or the manager has been started.
	 */
	register(controller: Controller): void;
	/**
	 * Runs all controllers until the signal aborts, and resolves when all of them have ended. What
	 * fails in one is restarted and touches no other.
	 *
	 * @throws Error where the manager has been started before.
	 */
	run(signal: AbortSignal): Promise<void>;
	/** A report on each controller, as it is now. */
	state(): ManagerState;
	/** Which types drive which. */
	graph(): DependencyGraph;
}

/** Makes a manager without controllers. */
export function createControllerManager(options: ControllerManagerOptions): ControllerManager {
	const { client, leases, leaseName = "controllers" } = options;
	const cloningClient = options.cloningClient ?? createResourceServiceCloningClient(client);
	const runtime = options.runtime ?? systemRuntime;
	const logger = options.logger ?? silentLogger;
	const limits = { ...defaultLimits, ...options.limits };
	const lease =
		leases && new SharedLease(leases, { name: leaseName, clock: runtime.clock, logger });
	const controllers: Controller[] = [];
	const supervisors: Supervisor[] = [];
	let started = false;

	const graph = () => dependencyGraph(controllers);
	return {
		register(controller) {
			if (started) {
				throw new Error(
					`controller ${controller.name}: it can't be registered after the manager has been started`,
				);
			}
			checkController(controller);
			if (controllers.some(({ name }) => name === controller.name)) {
				throw new Error(`controller ${controller.name}: one of that name is registered already`);
			}
			controllers.push(controller);
			const named = withFields(logger, { controller: controller.name });
			const shared = { client, cloningClient, runtime, limits };
			const environment = { ...shared, controller, logger: named, tally: new ReconcileTally() };
			const needed = controller.placement === "singleton" ? lease : undefined;
			supervisors.push(new Supervisor(environment, needed));
		},
		async run(signal) {
			if (started) {
				throw new Error("the controller manager has been started before");
			}
			started = true;
			for (const cycle of graph().cycles) {
				const types = [...cycle, cycle[0]].join(" -> ");
				logger.warn({ cycle }, `controllers drive each other in a cycle: ${types}`);
			}
			const leasing = new AbortController();
			const holding = lease?.run(leasing.signal);
			await Promise.all([aborted(signal), ...supervisors.map((each) => each.run(signal))]);
			leasing.abort(signal.reason);
			await holding;
		},
		state: () => ({
			holdsLease: lease?.held,
			controllers: supervisors.map((supervisor) => supervisor.state()),
		}),
		graph,
	};
}
