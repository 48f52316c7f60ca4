import type { OnUndecodable } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import { DecodeError, nameKey, sameName } from "@plinth/resource";
import type { Change, ChangePredicate } from "../define/change.ts";
import type { MapperContext } from "../define/context.ts";
import type { MapResult } from "../define/mapper.ts";
import type { MapEvent, ResourceWatch } from "../define/watch.ts";
import type { Priority } from "../queue/queue-entry.ts";
import type { Task } from "../queue/task.ts";
import { type Outcome, type RunningWork, WorkerPool } from "../queue/worker-pool.ts";
import type { RunEnvironment } from "./run-environment.ts";

/** What the mapping queues of a run share. */
export interface MappingScope {
	readonly environment: RunEnvironment;
	/** The context of one mapping; the mapper may be given the shared cache. */
	readonly context: (task: Task, readsOnly: boolean) => MapperContext;
	readonly request: (id: ID, priority: Priority) => void;
	/** Queues all managed resources. */
	readonly requestAll: () => void;
	/** A version of a watched resource can't be decoded. It may be an earlier one than the cached. */
	readonly onUndecodable: OnUndecodable;
}

/** How many mappers of one watch may wait for something at once. */
const concurrency = 4;

/** What waits to be mapped under a key. */
interface Versions {
	/** In the order in which they happened. */
	readonly kept: readonly Resource[];
	/** Whether versions in between were dropped, and nothing was queued for that yet. */
	hasGaps: boolean;
}

/**
 * Past this many versions of one resource, those in the middle are dropped, and all managed
 * resources are queued besides: any of them may have depended on what was dropped. The oldest and
 * the newest stay, since they alone lead to managed resources that are yet to be created.
 */
const maxVersions = 64;

/** How many of the newest stay then: room for as many again before the next gap. */
const newestKept = 31;

/**
 * The queue between a watched type and the requests that its mapper makes.
 *
 * A key's item is all versions of the resource since it was last mapped, from the one before the
 * first change. Each is mapped: what depended on a version in between may have been reconciled
 * with it. Since a failed item is put before what came later, and requests carry no more than an
 * ID, nothing of an old version can take the place of a newer one.
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
			this.pool.add(nameKey(id), { kept: versions, hasGaps: false }, "live");
		}
	}

	/** Queues a resource that was there when the run began. */
	addPrimed(resource: Resource): void {
		if (resource.id !== undefined) {
			const versions = { kept: [resource], hasGaps: false };
			this.pool.add(nameKey(resource.id), versions, "background");
		}
	}

	#map(versions: Versions, task: Task, priority: Priority): Outcome | Promise<Outcome> {
		if (versions.hasGaps) {
			versions.hasGaps = false;
			this.#scope.requestAll();
		}
		const context = this.#scope.context(task, this.#watch.readsOnly);
		return requestEach(
			versions.kept.map((version) => () => this.#mapVersion(context, version)),
			(id) => this.#scope.request(id, priority),
		);
	}

	/** Maps one version. One that can't be decoded maps to nothing, if the mapper reads its data. */
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
			// What a generator answers is read here, so that its failure shows here.
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
		reportAfterMs: controller.reconcileReportMs,
		timeLimitMs: controller.reconcileLimitMs,
		onFailure: (failure: { key: string; error: unknown; failures: number; delayMs: number }) => {
			const { error: err, ...more } = failure;
			logger.warn({ ...fields, ...more, err }, "mapper failed");
		},
		onStillRunning: ({ key, runningMs }: RunningWork) =>
			logger.warn({ ...fields, key, runningMs: Math.round(runningMs) }, "mapper is still running"),
		onOverdue: (key: string) =>
			logger.error({ ...fields, key }, "mapper passed its time limit and was aborted"),
	};
}

/** Calls the mappers and requests what they answer, once all of them have; at once where none is awaited. */
function requestEach(
	mappers: readonly (() => MapResult)[],
	request: (id: ID) => void,
): Outcome | Promise<Outcome> {
	const ready: Iterable<ID>[] = [];
	for (const [at, map] of mappers.entries()) {
		const result = map();
		if (result instanceof Promise) {
			const rest = mappers.slice(at + 1).map(async (other) => other());
			return Promise.all([...ready, result, ...rest]).then((answers) =>
				requestAnswers(answers, request),
			);
		}
		ready.push(result);
	}
	return requestAnswers(ready, request);
}

function requestAnswers(answers: readonly Iterable<ID>[], request: (id: ID) => void): Outcome {
	const ids = answers.flatMap((answer) => [...answer]);
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

function mergeVersions(earlier: Versions, later: Versions): Versions {
	const merged = [...earlier.kept, ...later.kept.filter((each) => !earlier.kept.includes(each))];
	return merged.length > maxVersions
		? { kept: [...merged.slice(0, 1), ...merged.slice(-newestKept)], hasGaps: true }
		: { kept: merged, hasGaps: earlier.hasGaps || later.hasGaps };
}
