import type { UndecodableListener } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import { DecodeError, nameKey, sameName } from "@plinth/resource";
import type { Change, ChangePredicate } from "../define/change.ts";
import type { MapperContext } from "../define/context.ts";
import type { MapResult } from "../define/mapper.ts";
import type { MapEvent, ResourceWatch } from "../define/watch.ts";
import type { Priority } from "../queue/queue-entry.ts";
import type { Task } from "../queue/task.ts";
import { type Outcome, type RunningWork, WorkerPool } from "../queue/worker-pool.ts";
import type { RequestOptions } from "./reconciler.ts";
import type { RunEnvironment } from "./run-environment.ts";

/** The parts that all mapping queues of a run share. */
export interface MappingScope {
	readonly environment: RunEnvironment;
	/** Creates the context of one mapping, with the shared cache if the mapper is read-only. */
	readonly context: (task: Task, readOnly: boolean) => MapperContext;
	/** Requests a managed resource. */
	readonly request: (id: ID, priority: Priority, options?: RequestOptions) => void;
	/** Queues all managed resources. */
	readonly requestAll: () => void;
	/** A version of a watched resource can't be decoded. It may be older than the cached version. */
	readonly onUndecodable: UndecodableListener;
}

/** How many mappers of one watch may be pending concurrently. */
const concurrency = 4;

/** The queued versions of a resource. */
interface Versions {
	/** Oldest first. */
	readonly kept: readonly Resource[];
	/** Whether versions in between were dropped, and this has not been compensated yet. */
	hasGaps: boolean;
	/** The shards whose managed resources are requested; all if `undefined`. */
	readonly shards: ReadonlySet<number> | undefined;
}

/**
 * Beyond this many versions of one resource, those in the middle are dropped, and all managed resources
 * are enqueued in addition: any of them may have depended on a dropped version. The oldest and the newest
 * are kept, since only they can lead to managed resources that do not exist yet.
 */
const maxVersions = 64;

/** How many of the newest are kept then, which leaves room for as many again before the next gap. */
const newestKept = 31;

/**
 * The queue between a watched type and the requests that its mapper makes.
 *
 * The item of a key consists of all versions of the resource since it was last mapped, beginning with the
 * one before the first change. Each is mapped: a resource that depended on an intermediate version may
 * have been reconciled with it. Since a failed item precedes later ones, and requests contain nothing but
 * an ID, data of an old version can't replace that of a newer one.
 */
export class MappingQueue {
	readonly #watch: ResourceWatch;
	readonly #scope: MappingScope;
	readonly pool: WorkerPool<Versions>;

	constructor(watch: ResourceWatch, scope: MappingScope) {
		this.#watch = watch;
		this.#scope = scope;
		this.pool = new WorkerPool<Versions>({
			...poolOptions(scope, { type: watch.type.key }),
			merge: mergeVersions,
			work: (versions, task, priority) => this.#map(versions, task, priority),
		});
	}

	/** Which changes are to be mapped. */
	get when(): ChangePredicate {
		return this.#watch.when;
	}

	/** Queues a change for mapping. */
	add(change: Change): void {
		const versions = versionsOf(change);
		const id = versions[0]?.id;
		if (id !== undefined) {
			this.pool.add(nameKey(id), { kept: versions, hasGaps: false, shards: undefined }, "live");
		}
	}

	/** Queues a cached resource for mapping, to request managed resources in these shards, or all. */
	addPrimed(resource: Resource, shards: ReadonlySet<number> | undefined): void {
		if (resource.id !== undefined) {
			const versions = { kept: [resource], hasGaps: false, shards };
			this.pool.add(nameKey(resource.id), versions, "background");
		}
	}

	#map(versions: Versions, task: Task, priority: Priority): Outcome | Promise<Outcome> {
		if (versions.hasGaps) {
			versions.hasGaps = false;
			this.#scope.requestAll();
		}
		const context = this.#scope.context(task, this.#watch.readOnly);
		const writes = versionsSinceFirst(versions);
		return requestEach(
			versions.kept.map((version) => () => this.#mapVersion(context, version)),
			(id) => this.#scope.request(id, priority, { shards: versions.shards, writes }),
		);
	}

	/** Maps one version. If it can't be decoded and the mapper reads its data, it maps to nothing. */
	#mapVersion(context: MapperContext, version: Resource): MapResult {
		const skip = (error: unknown) => {
			const { id } = version;
			if (!(error instanceof DecodeError) || id === undefined || !sameName(error.id, id)) {
				throw error;
			}
			this.#scope.onUndecodable(this.#watch.type, version, error);
			return [];
		};
		try {
			const result = this.#watch.map(context, version);
			// A generator is read here, so that its error is caught here.
			return result instanceof Promise ? result.catch(skip) : [...result];
		} catch (error) {
			return skip(error);
		}
	}
}

/** The queue between a custom watch and the requests that its mapper makes; the latest event wins. */
export class EventMappingQueue {
	readonly pool: WorkerPool<MapEvent>;

	constructor(name: string, scope: MappingScope) {
		this.pool = new WorkerPool<MapEvent>({
			...poolOptions(scope, { watch: name }),
			work: (map, task, priority) =>
				requestEach([() => map(scope.context(task, false))], (id) => scope.request(id, priority)),
		});
	}

	add(key: string, map: MapEvent): void {
		this.pool.add(key, map, "live");
	}
}

function poolOptions(scope: MappingScope, fields: Readonly<Record<string, string>>) {
	const { runtime, controller, logger } = scope.environment;
	return {
		runtime,
		concurrency,
		backoff: controller.backoff,
		reportAfterMs: controller.slowReconcileMs,
		timeLimitMs: controller.reconcileTimeoutMs,
		onFailure: (failure: { key: string; error: unknown; failures: number; delayMs: number }) => {
			const { error: err, delayMs, ...more } = failure;
			logger.warn({ ...fields, ...more, delayMs: Math.round(delayMs), err }, "mapper failed");
		},
		onStillRunning: ({ key, runningMs }: RunningWork) =>
			logger.warn({ ...fields, key, runningMs: Math.round(runningMs) }, "mapper is still running"),
		onOverdue: (key: string) =>
			logger.error({ ...fields, key }, "mapper exceeded its time limit and was aborted"),
	};
}

/** Calls the mappers and requests their results once all have returned; synchronously if none is async. */
function requestEach(
	mappers: readonly (() => MapResult)[],
	request: (id: ID) => void,
): Outcome | Promise<Outcome> {
	const ready: Iterable<ID>[] = [];
	for (const [at, map] of mappers.entries()) {
		const result = map();
		if (result instanceof Promise) {
			const rest = mappers.slice(at + 1).map(async (other) => other());
			return Promise.all([...ready, result, ...rest]).then((results) =>
				requestAll(results, request),
			);
		}
		ready.push(result);
	}
	return requestAll(ready, request);
}

function requestAll(results: readonly Iterable<ID>[], request: (id: ID) => void): Outcome {
	const ids = results.flatMap((result) => [...result]);
	for (const id of ids) {
		request(id);
	}
	return { kind: "done" };
}

function versionsOf(change: Change): readonly Resource[] {
	switch (change.kind) {
		case "created":
			return [change.current];
		case "updated":
			return [change.previous, change.current];
		case "deleted":
			return [change.previous];
	}
}

/** The versions since the first, which is that from before the first change, unless it is the only one. */
function versionsSinceFirst({ kept }: Versions): readonly string[] {
	return kept.slice(kept.length > 1 ? 1 : 0).map(({ version }) => version);
}

function mergeVersions(earlier: Versions, later: Versions): Versions {
	const merged = [...earlier.kept, ...later.kept.filter((each) => !earlier.kept.includes(each))];
	const shards = earlier.shards && later.shards && earlier.shards.union(later.shards);
	return merged.length > maxVersions
		? { kept: [...merged.slice(0, 1), ...merged.slice(-newestKept)], hasGaps: true, shards }
		: { kept: merged, hasGaps: earlier.hasGaps || later.hasGaps, shards };
}
