import { createResourceServiceCloningClient, type ID } from "@plinth/proto";
import { type EventRecorder, noEvents } from "@plinth/resource";
import {
	aborted,
	type LeaseManager,
	type Logger,
	type Runtime,
	silentLogger,
	systemRuntime,
} from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { Controller } from "../define/controller.ts";
import { type EndlessChain, WriteChains } from "../queue/write-chains.ts";
import { type ControllerLimits, defaultControllerLimits } from "../run/limits.ts";
import { withFields } from "../run/log-fields.ts";
import { ReconcileTally } from "../run/reconcile-tally.ts";
import type { RunWork } from "../run/run.ts";
import { Shards } from "../shards/shards.ts";
import { checkController } from "./check-controller.ts";
import type { ManagerState, ReconcileState } from "./controller-state.ts";
import { type DependencyGraph, dependencyGraph } from "./dependency-graph.ts";
import { SharedLease } from "./shared-lease.ts";
import { Supervisor } from "./supervisor.ts";

/** The options of a controller manager. */
export interface ControllerManagerOptions {
	/**
	 * The resource service, with full rights. Resources that it returns are cached without copying: in a
	 * server they are the stored objects, and in an agent those of all its caches.
	 */
	readonly client: ResourceClient;
	/**
	 * The client for reconcilers: it must copy requests and responses. By default it is created from
	 * `client`.
	 */
	readonly cloningClient?: ResourceClient;
	/** The system runtime by default. */
	readonly runtime?: Runtime;
	/**
	 * Grants the lease of singletons and those of shards. Without it, this is assumed to be the only server: it runs
	 * all controllers for all resources, and their writes are not fenced.
	 */
	readonly leases?: LeaseManager;
	/**
	 * The name of the lease of singletons; `controllers` by default. Those of the sharded controller `mailer` are
	 * `controllers-mailer-server-…` and `controllers-mailer-shard-…`.
	 */
	readonly leaseName?: string;
	/** The region of the service, if it has one: reads of the caches take it for what is no copy. */
	readonly region?: string | undefined;
	/** Nothing is logged by default. */
	readonly logger?: Logger;
	/** Records what controllers tell of resources, and failed reconciles. By default nothing does. */
	readonly events?: EventRecorder;
	/** Omitted limits have their defaults. */
	readonly limits?: Partial<ControllerLimits>;
}

/** Runs controllers. */
export interface ControllerManager {
	/**
	 * Adds a controller.
	 *
	 * @throws Error that names the controller, if it is invalid, its name is already registered, or the
	 * manager has been started.
	 */
	register(controller: Controller): void;
	/**
	 * Runs all controllers until the signal aborts, and resolves when all of them have ended. A failed
	 * controller is restarted and does not affect others.
	 *
	 * @throws Error if the manager has already been started.
	 */
	run(signal: AbortSignal): Promise<void>;
	/** A report on each controller, as it is now. */
	state(): ManagerState;
	/**
	 * The keys of a controller that fail and those that it is reconciling, up to `limit` of each; `undefined` if there is no
	 * such controller.
	 */
	work(controller: string, limit: number): RunWork | undefined;
	/** What each controller that manages the resource does with it. */
	reconcilesOf(id: ID): readonly ReconcileState[];
	/** The dependencies between the types of all controllers. */
	graph(): DependencyGraph;
}

/** The lease of the singleton controllers of a server, unless `leaseName` names another one. */
export const singletonLease = "controllers";

/** Creates a manager without controllers. */
export function createControllerManager(options: ControllerManagerOptions): ControllerManager {
	const { client, leases, leaseName = singletonLease, region } = options;
	const cloningClient = options.cloningClient ?? createResourceServiceCloningClient(client);
	const runtime = options.runtime ?? systemRuntime;
	const { logger = silentLogger, events = noEvents } = options;
	const limits = { ...defaultControllerLimits, ...options.limits };
	const lease =
		leases && new SharedLease(leases, { name: leaseName, clock: runtime.clock, logger });
	const chains = new WriteChains(runtime.clock);
	const controllers: Controller[] = [];
	const supervisors: Supervisor[] = [];
	let started = false;

	const graph = () => dependencyGraph(controllers);
	/** The lease, if some controller needs it. */
	const neededLease = () =>
		controllers.some(({ placement }) => placement === "singleton") ? lease : undefined;
	return {
		register(controller) {
			checkRegistration(controller, controllers, started);
			controllers.push(controller);
			const named = withFields(logger, { controller: controller.name });
			const shared = { client, cloningClient, region, runtime, limits, chains, events };
			const tally = new ReconcileTally();
			const onEndlessChain = (chain: EndlessChain) => {
				tally.triggeredItself(chain);
				const { key, length } = chain;
				named.warn(
					{ key, length },
					`reconciles trigger each other: ${reasonOf(controller, graph())}`,
				);
			};
			const environment = { ...shared, controller, logger: named, tally, onEndlessChain };
			const shards = () =>
				leases && {
					shards: new Shards({
						...runtime,
						leases,
						name: `${leaseName}-${controller.leaseName ?? controller.name}`,
						logger: named,
					}),
				};
			const needed = {
				...(controller.placement === "singleton" && lease && { lease }),
				...(controller.placement === "sharded" && shards()),
			};
			supervisors.push(new Supervisor(environment, needed));
		},
		async run(signal) {
			if (started) {
				throw new Error("the controller manager has already been started");
			}
			started = true;
			const releaseLease = new AbortController();
			const leaseReleased = neededLease()?.run(releaseLease.signal);
			await Promise.all([aborted(signal), ...supervisors.map((each) => each.run(signal))]);
			releaseLease.abort(signal.reason);
			await leaseReleased;
		},
		state: () => ({
			holdsLease: neededLease()?.held,
			controllers: supervisors.map((supervisor) => supervisor.state()),
		}),
		work: (controller, limit) => supervisors.find(({ name }) => name === controller)?.work(limit),
		reconcilesOf: (id) =>
			supervisors.filter((each) => each.manages(id)).map((each) => each.reconcileOf(id)),
		graph,
	};
}

/** @throws Error if the controller can't be registered beside others. */
function checkRegistration(
	controller: Controller,
	others: readonly Controller[],
	hasStarted: boolean,
): void {
	const { name } = controller;
	if (hasStarted) {
		throw new Error(`controller ${name} can't be registered after the manager was started`);
	}
	checkController(controller);
	if (others.some((other) => other.name === name)) {
		throw new Error(`controller ${name}: a controller with this name is already registered`);
	}
}

/** Why reconciles of a controller may trigger each other. */
function reasonOf({ manages }: Controller, { cycles }: DependencyGraph): string {
	const cycle = cycles.find((types) => types.includes(manages.key));
	return cycle === undefined
		? "what they write requests the next one; `when` can leave out changes that need none"
		: `their types depend on each other: ${[...cycle, cycle[0]].join(" -> ")}`;
}
