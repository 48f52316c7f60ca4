import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ControllerService } from "@plinth/proto";
import {
	type Controller,
	ControllerSchema,
	GetDependencyGraphResponseSchema,
	ListControllersResponseSchema,
	Phase,
	Placement,
	type QueueSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { QueueState } from "../queue/merging-queue.ts";
import type { ControllerState } from "./controller-state.ts";
import { toMermaid } from "./dependency-graph.ts";
import type { ControllerManager } from "./manager.ts";

/** Serves a manager's reports as a read-only Connect service. */
export function createControllerService(
	manager: Pick<ControllerManager, "state" | "graph">,
): ServiceImpl<typeof ControllerService> {
	return {
		listControllers() {
			const { controllers, holdsLease } = manager.state();
			return create(ListControllersResponseSchema, {
				controllers: controllers.map(controllerMessage),
				...(holdsLease !== undefined && { holdsLease }),
			});
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

/** How many long-running reconciles are reported by key. */
const maxStillRunning = 100;

function controllerMessage(state: ControllerState): Controller {
	const { run, lastError, reconciles, ownWrites } = state;
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
			.slice(0, maxStillRunning)
			.map(({ key, runningMs }) => ({ key, running: durationOf(runningMs) })),
		reconciles: {
			succeeded: BigInt(reconciles.succeeded),
			failed: BigInt(reconciles.failed),
			overdue: BigInt(reconciles.overdue),
			dropped: BigInt(reconciles.dropped),
			total: durationOf(reconciles.totalMs),
			longest: durationOf(reconciles.longestMs),
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
