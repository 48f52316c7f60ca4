import { type Cache, cloningView, createCache } from "@plinth/cache";
import { cachedRegions, cachedTypes } from "../define/cached-types.ts";
import type { MapperContext } from "../define/context.ts";
import type { Task } from "../queue/task.ts";
import type { WorkerPool } from "../queue/worker-pool.ts";
import { CacheUpdater } from "./cache-updater.ts";
import { EventMappingQueue, MappingQueue, type MappingScope } from "./mapping-queues.ts";
import type { OwnWrites } from "./own-writes.ts";
import { Reconciler } from "./reconciler.ts";
import { Resync } from "./resync.ts";
import type { ShardGate } from "./shard-gate.ts";
import { UndecodableResources } from "./undecodable.ts";
import type { WorkScope } from "./work-context.ts";

/** The components of a run from its step 2 on; each run has new ones. */
export interface ControllerComponents {
	readonly cache: Cache;
	readonly undecodable: UndecodableResources;
	/** One per cached type, the managed one first. */
	readonly updaters: readonly CacheUpdater[];
	readonly reconciler: Reconciler;
	/** By the key of the watched type; those of the managed type are for copies alone. */
	readonly maps: ReadonlyMap<string, MappingQueue>;
	/** By the name of the custom watch. */
	readonly events: ReadonlyMap<string, EventMappingQueue>;
	readonly resync: Resync | undefined;
}

/** The common interface of all pools of a run. */
export type AnyPool = Pick<
	WorkerPool<unknown>,
	"stop" | "abort" | "idle" | "room" | "state" | "empty"
>;

/** Creates the cache and the queues of a run, all of them empty. */
export function createControllerComponents(
	scope: WorkScope,
	ownWrites: OwnWrites,
	locked: ReadonlyMap<string, Promise<void>>,
	gate: ShardGate | undefined,
): ControllerComponents {
	const { controller } = scope.environment;
	const { indexes, queries } = controller;
	const types = cachedTypes(controller);
	const undecodable = new UndecodableResources(scope.environment.logger);
	const cache = createCache({
		...{ types, indexes, queries, region: scope.environment.region },
		onUndecodable: (type, { id }, error) => {
			if (id !== undefined) {
				undecodable.note(type, id, error);
			}
		},
	});
	const maps = new Map<string, MappingQueue>();
	const events = new Map<string, EventMappingQueue>();
	const isMapping = () => [...maps.values(), ...events.values()].some(({ pool }) => pool.canStart);
	const reconciler = new Reconciler({ scope, gate, cache, ownWrites, undecodable, isMapping });
	for (const [key, until] of locked) {
		reconciler.lock(key, until);
	}
	const mapping = mappingScope(scope, cache, reconciler, undecodable);
	for (const watch of controller.watches) {
		if (watch.kind === "resources") {
			maps.set(watch.type.key, new MappingQueue(watch, mapping));
		} else {
			events.set(watch.name, new EventMappingQueue(watch.name, mapping));
		}
	}
	const updaters = types.map((type) => {
		const watched = { type, regions: cachedRegions(controller, type) };
		return new CacheUpdater(watched, cache, undecodable);
	});
	const resync = resyncOf(scope, cache, reconciler);
	return { cache, undecodable, updaters, reconciler, maps, events, resync };
}

/** All pools, that of the reconciler first. */
export function poolsOf({ reconciler, maps, events }: ControllerComponents): readonly AnyPool[] {
	return [reconciler.pool, ...[...maps.values(), ...events.values()].map(({ pool }) => pool)];
}

function mappingScope(
	scope: WorkScope,
	cache: Cache,
	reconciler: Reconciler,
	undecodable: UndecodableResources,
): MappingScope {
	const { environment } = scope;
	const { logger, controller } = environment;
	const view = cloningView(cache);
	return {
		environment,
		context: (task: Task, readOnly: boolean): MapperContext => ({
			cache: readOnly ? cache : view,
			logger,
			get signal() {
				return task.signal;
			},
		}),
		request: (id, priority, options) => reconciler.request(id, priority, options),
		onUndecodable: (type, resource, error) => {
			const { id } = resource;
			if (id !== undefined && cache.get(type, id)?.resource === resource) {
				undecodable.note(type, id, error);
			}
		},
		requestAll: () => {
			for (const id of cache.ids(controller.manages)) {
				reconciler.enqueue(id, "background");
			}
		},
	};
}

function resyncOf(scope: WorkScope, cache: Cache, reconciler: Reconciler): Resync | undefined {
	const { controller, runtime } = scope.environment;
	const { resyncMs, manages } = controller;
	if (resyncMs === "never") {
		return undefined;
	}
	return new Resync({
		clock: runtime.clock,
		periodMs: resyncMs,
		all: () => cache.ids(manages),
		onDue: (id) => {
			if (cache.get(manages, id) !== undefined) {
				reconciler.enqueue(id, "background");
			}
		},
	});
}
