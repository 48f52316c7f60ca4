import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { ControllerService, ID, Resource } from "@plinth/proto";
import {
	type Controller,
	ControllerSchema,
	GetControllerResponseSchema,
	GetDependencyGraphResponseSchema,
	ListControllersResponseSchema,
	ListReconcilesResponseSchema,
	Phase,
	Placement,
	type QueueSchema,
	type ReconcileFailureSchema,
	type ReconcileSchema,
	ReconcileState as States,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { QueueState } from "../queue/merging-queue.ts";
import type { EntryState, KeyFailure } from "../queue/queue-entry.ts";
import type { PooledKey } from "../queue/worker-pool.ts";
import type { ReconcileFailure } from "../run/reconcile-tally.ts";
import type { ControllerState, ReconcileState } from "./controller-state.ts";
import { toMermaid } from "./dependency-graph.ts";
import type { ControllerManager } from "./manager.ts";

/** The reports of a manager. */
export type ControllerReports = Pick<
	ControllerManager,
	"state" | "graph" | "work" | "reconcilesOf"
>;

/** Options of the service. */
export interface ControllerServiceOptions {
	/** Reads a resource with the rights of the caller. @throws ConnectError if the caller may not, or there is none. */
	readonly read: (id: ID | undefined, call: HandlerContext) => Promise<Resource>;
}

/** Serves a manager's reports as a read-only Connect service. */
export function createControllerService(
	manager: ControllerReports,
	{ read }: ControllerServiceOptions,
): ServiceImpl<typeof ControllerService> {
	return {
		listControllers() {
			const { controllers, holdsLease } = manager.state();
			return create(ListControllersResponseSchema, {
				controllers: controllers.map(controllerMessage),
				...(holdsLease !== undefined && { holdsLease }),
			});
		},
		getController({ name }) {
			const state = manager.state().controllers.find((each) => each.name === name);
			const work = manager.work(name, maxKeys);
			if (state === undefined || work === undefined) {
				throw new ConnectError(`there is no controller ${JSON.stringify(name)}`, Code.NotFound);
			}
			const shown = (keys: readonly PooledKey[]) => keys.map((key) => reconcileInit(name, key));
			return create(GetControllerResponseSchema, {
				controller: controllerMessage(state),
				failing: shown(work.failing),
				running: shown(work.running),
			});
		},
		async listReconciles({ id }, call) {
			// The one that is stored: the request may leave out the tenancy.
			const stored = (await read(id, call)).id;
			const states = stored === undefined ? [] : manager.reconcilesOf(stored);
			return create(ListReconcilesResponseSchema, { reconciles: states.map(stateInit) });
		},
		getDependencyGraph() {
			const graph = manager.graph();
			return create(GetDependencyGraphResponseSchema, {
				types: [...graph.types],
				dependencies: [...graph.dependencies],
				cycles: graph.cycles.map((types) => ({ types: [...types] })),
				mermaid: toMermaid(graph),
			});
		},
	};
}

/** How many reconciles are reported by key. */
const maxKeys = 100;

function controllerMessage(state: ControllerState): Controller {
	const { run, lastError, reconciles, ownWrites } = state;
	const { lastFailure, endlessChain } = reconciles;
	return create(ControllerSchema, {
		name: state.name,
		manages: state.manages,
		watches: [...state.watches],
		placement: placements[state.placement],
		phase: phases[state.phase],
		inPhase: durationOf(state.inPhaseMs),
		restarts: state.restarts,
		...(lastError && {
			lastError: { message: lastError.message, occurredAt: timestampFromMs(lastError.atMs) },
		}),
		...(run && {
			requests: queueInit(run.requests),
			mappings: Object.fromEntries(
				Object.entries(run.mappings).map(([name, queue]) => [name, queueInit(queue)]),
			),
			cachedTypes: run.cached.map(({ type, size, indexes }) => ({
				type,
				size: BigInt(size),
				indexes: Object.fromEntries(indexes.map(({ name, keys }) => [name, BigInt(keys)])),
			})),
		}),
		...(run?.shards && { shards: { open: [...run.shards.open], count: run.shards.count } }),
		overdue: [...(run?.overdue ?? []), ...state.orphaned],
		...(run && { undecodable: { ...run.undecodable, errors: [...run.undecodable.errors] } }),
		stillRunning: (run?.stillRunning ?? [])
			.slice(0, maxKeys)
			.map(({ key, runningMs }) => ({ key, running: durationOf(runningMs) })),
		reconciles: {
			succeeded: BigInt(reconciles.succeeded),
			failed: BigInt(reconciles.failed),
			overdue: BigInt(reconciles.overdue),
			dropped: BigInt(reconciles.dropped),
			total: durationOf(reconciles.totalMs),
			longest: durationOf(reconciles.longestMs),
			...(lastFailure && { lastFailure: lastFailureInit(lastFailure) }),
			...(endlessChain && {
				endlessChain: { ...endlessChain, occurredAt: timestampFromMs(endlessChain.atMs) },
			}),
		},
		ownWrites: {
			noted: BigInt(ownWrites.noted),
			waits: BigInt(ownWrites.waits),
			waiting: ownWrites.waiting,
			waited: durationOf(ownWrites.waitedMs),
			longestWait: durationOf(ownWrites.longestWaitMs),
		},
	});
}

function stateInit({
	controller,
	key,
	work,
	isOrphaned,
}: ReconcileState): MessageInitShape<typeof ReconcileSchema> {
	if (typeof work === "object") {
		return reconcileInit(controller, work);
	}
	return { controller, key, state: isOrphaned ? States.OVERDUE : statesWithoutWork[work] };
}

function reconcileInit(
	controller: string,
	{ key, state, isOverdue, failure, ...times }: PooledKey,
): MessageInitShape<typeof ReconcileSchema> {
	const inStateMs = times.runningMs ?? times.waitingMs;
	return {
		...{ controller, key },
		state: isOverdue ? States.OVERDUE : keyStates[state],
		...(inStateMs !== undefined && { inState: durationOf(inStateMs) }),
		...(times.dueInMs !== undefined && { dueIn: durationOf(times.dueInMs) }),
		...(failure && { failure: failureInit(key, failure) }),
	};
}

function failureInit(
	key: string,
	{ message, failures, sinceMs, atMs }: KeyFailure,
): MessageInitShape<typeof ReconcileFailureSchema> {
	return {
		...{ key, message },
		attempts: failures,
		since: timestampFromMs(sinceMs),
		occurredAt: timestampFromMs(atMs),
	};
}

function lastFailureInit({
	key,
	message,
	atMs,
}: ReconcileFailure): MessageInitShape<typeof ReconcileFailureSchema> {
	return { key, message, occurredAt: timestampFromMs(atMs) };
}

function queueInit(queue: QueueState): MessageInitShape<typeof QueueSchema> {
	const { oldest, ...counts } = queue;
	return {
		...counts,
		...(oldest && { oldestKey: oldest.key, oldestWaiting: durationOf(oldest.waitingMs) }),
	};
}

/** Rounds to whole milliseconds: finer measurements would be noise in a report. */
function durationOf(ms: number) {
	return durationFromMs(Math.round(ms));
}

const statesWithoutWork = {
	idle: States.IDLE,
	elsewhere: States.ELSEWHERE,
	stopped: States.STOPPED,
} as const;

const keyStates: Readonly<Record<EntryState, States>> = {
	ready: States.READY,
	delayed: States.DELAYED,
	active: States.RUNNING,
	held: States.HELD,
};

const placements: Readonly<Record<ControllerState["placement"], Placement>> = {
	singleton: Placement.SINGLETON,
	sharded: Placement.SHARDED,
	"each-server": Placement.EACH_SERVER,
};

const phases: Readonly<Record<ControllerState["phase"], Phase>> = {
	created: Phase.CREATED,
	"waiting-for-lease": Phase.WAITING_FOR_LEASE,
	initializing: Phase.INITIALIZING,
	priming: Phase.PRIMING,
	running: Phase.RUNNING,
	stopping: Phase.STOPPING,
	"backing-off": Phase.BACKING_OFF,
	stopped: Phase.STOPPED,
};
