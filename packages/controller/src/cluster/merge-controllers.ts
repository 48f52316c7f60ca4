import { create } from "@bufbuild/protobuf";
import {
	type Duration,
	durationFromMs,
	durationMs,
	type Timestamp,
	timestampMs,
} from "@bufbuild/protobuf/wkt";
import {
	type CachedType,
	CachedTypeSchema,
	type Controller,
	ControllerSchema,
	type OwnWrites,
	OwnWritesSchema,
	Phase,
	type Queue,
	QueueSchema,
	type Reconciles,
	ReconcilesSchema,
	type Shards,
	ShardsSchema,
	type Undecodable,
	UndecodableSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { maxKeys } from "../manager/controller-messages.ts";

/**
 * One controller as the servers that have it report it, in the order of their names. What they count is added up; of
 * errors, the newest is kept, and of times, the longest. `undefined` if there are none.
 */
export function mergeControllers(all: readonly Controller[]): Controller | undefined {
	const [first, ...others] = all;
	if (first === undefined || others.length === 0) {
		return first;
	}
	const { phase, inPhase } = all.reduce((a, b) => (isShownBefore(b, a) ? b : a));
	const { name, manages, watches, placement } = first;
	return create(ControllerSchema, {
		...{ name, manages, watches, placement, phase },
		...present({
			inPhase,
			lastError: newest(all.map((each) => each.lastError)),
			requests: mergeQueues(all.flatMap(({ requests }) => requests ?? [])),
			reconciles: mergeReconciles(all.flatMap(({ reconciles }) => reconciles ?? [])),
			ownWrites: mergeOwnWrites(all.flatMap(({ ownWrites }) => ownWrites ?? [])),
			undecodable: mergeUndecodable(all.flatMap(({ undecodable }) => undecodable ?? [])),
			shards: mergeShards(all.flatMap(({ shards }) => shards ?? [])),
		}),
		restarts: sum(all.map(({ restarts }) => restarts)),
		mappings: byKey(
			all.map(({ mappings }) => mappings),
			(queues) => mergeQueues(queues) ?? create(QueueSchema),
		),
		cachedTypes: mergeCachedTypes(all.flatMap(({ cachedTypes }) => cachedTypes)),
		overdue: [...new Set(all.flatMap(({ overdue }) => overdue))],
		stillRunning: all
			.flatMap(({ stillRunning }) => stillRunning)
			.sort((a, b) => byDuration(b.running, a.running))
			.slice(0, maxKeys),
		servers: all.flatMap(({ servers }) => servers),
	});
}

/** The order in which phases are shown: first those in which a controller does not run, but should. */
const shownFirst: readonly Phase[] = [
	Phase.BACKING_OFF,
	Phase.STOPPING,
	Phase.INITIALIZING,
	Phase.PRIMING,
	Phase.RUNNING,
	Phase.CREATED,
	Phase.WAITING_FOR_LEASE,
	Phase.STOPPED,
];

/** Whether the phase of one server is shown rather than that of another: of the same phases, the one that lasts longer. */
function isShownBefore(one: Controller, other: Controller): boolean {
	const [rank, otherRank] = [one, other].map(({ phase }) => shownFirst.indexOf(phase));
	return rank === otherRank
		? byDuration(one.inPhase, other.inPhase) > 0
		: (rank ?? 0) < (otherRank ?? 0);
}

function mergeQueues(queues: readonly Queue[]): Queue | undefined {
	if (queues.length === 0) {
		return undefined;
	}
	const total = (count: (queue: Queue) => number) => sum(queues.map(count));
	const { oldestKey, oldestWaiting } = queues.reduce((a, b) =>
		byDuration(b.oldestWaiting, a.oldestWaiting) > 0 ? b : a,
	);
	return create(QueueSchema, {
		live: total(({ live }) => live),
		background: total(({ background }) => background),
		delayed: total(({ delayed }) => delayed),
		active: total(({ active }) => active),
		held: total(({ held }) => held),
		failing: total(({ failing }) => failing),
		...(oldestWaiting && { oldestKey, oldestWaiting }),
	});
}

function mergeReconciles(all: readonly Reconciles[]): Reconciles {
	const total = (count: (each: Reconciles) => bigint) => sumBig(all.map(count));
	return create(ReconcilesSchema, {
		succeeded: total(({ succeeded }) => succeeded),
		failed: total(({ failed }) => failed),
		overdue: total(({ overdue }) => overdue),
		dropped: total(({ dropped }) => dropped),
		total: durationFromMs(sum(all.map((each) => msOf(each.total)))),
		longest: durationFromMs(Math.max(0, ...all.map(({ longest }) => msOf(longest)))),
		durations: mergeDurations(all.map(({ durations }) => durations)),
		...present({
			lastFailure: newest(all.map(({ lastFailure }) => lastFailure)),
			endlessChain: newest(all.map(({ endlessChain }) => endlessChain)),
		}),
	});
}

/** Servers of older versions report none. */
function mergeDurations(all: readonly (readonly bigint[])[]): bigint[] {
	const length = Math.max(0, ...all.map((each) => each.length));
	return Array.from({ length }, (_, bucket) => sumBig(all.map((each) => each[bucket] ?? 0n)));
}

function mergeOwnWrites(all: readonly OwnWrites[]): OwnWrites {
	return create(OwnWritesSchema, {
		noted: sumBig(all.map(({ noted }) => noted)),
		waits: sumBig(all.map(({ waits }) => waits)),
		waiting: sum(all.map(({ waiting }) => waiting)),
		waited: durationFromMs(sum(all.map(({ waited }) => msOf(waited)))),
		longestWait: durationFromMs(Math.max(0, ...all.map(({ longestWait }) => msOf(longestWait)))),
	});
}

/** The most of any server: all servers cache the same resources. */
function mergeUndecodable(all: readonly Undecodable[]): Undecodable | undefined {
	const most = all.toSorted((a, b) => b.count - a.count)[0];
	return most && create(UndecodableSchema, most);
}

function mergeShards(all: readonly Shards[]): Shards | undefined {
	if (all.length === 0) {
		return undefined;
	}
	const open = new Set(all.flatMap((each) => each.open));
	return create(ShardsSchema, {
		open: [...open].sort((a, b) => a - b),
		count: Math.max(...all.map(({ count }) => count)),
	});
}

function mergeCachedTypes(all: readonly CachedType[]): CachedType[] {
	return [...Map.groupBy(all, ({ type }) => type)].map(([type, sizes]) =>
		create(CachedTypeSchema, {
			type,
			size: sumBig(sizes.map(({ size }) => size)),
			indexes: byKey(
				sizes.map(({ indexes }) => indexes),
				sumBig,
			),
		}),
	);
}

/** The values of each key together. */
function byKey<V>(
	maps: readonly Readonly<Record<string, V>>[],
	merge: (values: readonly V[]) => V,
): Record<string, V> {
	const entries = Map.groupBy(maps.flatMap(Object.entries<V>), ([key]) => key);
	return Object.fromEntries(
		[...entries].map(([key, values]) => [key, merge(values.map(([, value]) => value))]),
	);
}

/** The one that occurred last. */
function newest<T extends { readonly occurredAt?: Timestamp | undefined }>(
	all: readonly (T | undefined)[],
): T | undefined {
	const timeMs = ({ occurredAt }: T) => (occurredAt === undefined ? 0 : timestampMs(occurredAt));
	return all
		.filter((each) => each !== undefined)
		.reduce<T | undefined>(
			(last, each) => (last === undefined || timeMs(each) > timeMs(last) ? each : last),
			undefined,
		);
}

/** Orders durations, the shortest first. An absent one is shorter than all others. */
export function byDuration(one: Duration | undefined, other: Duration | undefined): number {
	return msOf(one, -1) - msOf(other, -1);
}

function msOf(duration: Duration | undefined, absent = 0): number {
	return duration === undefined ? absent : durationMs(duration);
}

function sum(values: readonly number[]): number {
	return values.reduce((total, value) => total + value, 0);
}

function sumBig(values: readonly bigint[]): bigint {
	return values.reduce((total, value) => total + value, 0n);
}

/** The object without properties that are undefined. */
function present<Value extends object>(
	value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
	return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as {
		[Key in keyof Value]?: Exclude<Value[Key], undefined>;
	};
}
