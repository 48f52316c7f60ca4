import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	ControllerOnServerSchema,
	ControllerSchema,
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

/** How many reconciles are reported by key. */
export const maxKeys = 100;

/**
 * A controller as a message.
 *
 * @param server - the name of the server on which it is in this state; `undefined` if the server has none.
 */
export function controllerMessage(state: ControllerState, server: string | undefined): Controller {
	const message = withoutServer(state);
	return server === undefined ? message : controllerOn(message, server, false);
}

/** A controller that is in its state on the server or agent of that name. */
export function controllerOn(message: Controller, server: string, isAgent: boolean): Controller {
	const { phase, inPhase, restarts, lastError, requests, reconciles, shards } = message;
	const on = create(ControllerOnServerSchema, {
		...{ server, phase, restarts, isAgent },
		...(inPhase && { inPhase }),
		...(lastError && { lastError }),
		...(requests && { requests }),
		...(reconciles && { reconciles }),
		...(shards && { shards }),
	});
	return create(ControllerSchema, { ...message, servers: [on] });
}

function withoutServer(state: ControllerState): Controller {
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
			durations: reconciles.durations.map(BigInt),
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

/** What a controller does with a resource, on the server of that name, as a message. */
export function stateInit(
	{ controller, key, work, isOrphaned }: ReconcileState,
	server: string | undefined,
): MessageInitShape<typeof ReconcileSchema> {
	if (typeof work === "object") {
		return reconcileInit(controller, work, server);
	}
	const state = isOrphaned ? States.OVERDUE : statesWithoutWork[work];
	return { controller, key, state, server: server ?? "" };
}

/** The work of a controller on a key, on the server of that name, as a message. */
export function reconcileInit(
	controller: string,
	{ key, state, isOverdue, failure, ...times }: PooledKey,
	server: string | undefined,
): MessageInitShape<typeof ReconcileSchema> {
	const inStateMs = times.runningMs ?? times.waitingMs;
	return {
		...{ controller, key, server: server ?? "" },
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
