import type { ID } from "@plinth/proto";
import { nameKey, type ResourceType } from "@plinth/resource";
import type { Clock, Logger, Timer } from "@plinth/runtime";
import type { Change, ChangePredicate } from "../define/change.ts";
import { yieldToEventLoop } from "../queue/pump.ts";
import { shardOf } from "../shards/shard-of.ts";
import type { ControllerComponents } from "./components.ts";
import type { MappingQueue } from "./mapping-queues.ts";
import { eventsPerTurn } from "./prime-cache.ts";
import type { Reconciler } from "./reconciler.ts";
import type { RunEnvironment } from "./run-environment.ts";

/** While more keys than this are ready, producers that can wait add no more. */
export const readyLimit = 10_000;

/** A callback that enqueues the requests for a change of the type, which the cache already contains. */
export function enqueueOnChange(
	{ reconciler, maps }: ControllerComponents,
	{ controller, logger }: RunEnvironment,
	type: ResourceType,
): (change: Change) => void {
	const map = maps.get(type.key);
	const mapped = map && guarded(map.when, type, logger);
	const addToMap = (change: Change) => {
		if (mapped?.(change)) {
			map?.add(change);
		}
	};
	if (type.key !== controller.manages.key) {
		return addToMap;
	}
	const when = guarded(controller.when, type, logger);
	return (change) => {
		const { id, version, origin } = change.kind === "deleted" ? change.previous : change.current;
		if (id?.region) {
			addToMap(change);
		} else if (id !== undefined && origin === undefined && when(change)) {
			// What an import has created here is managed by nothing here.
			reconciler.enqueue(id, "live", change.kind === "deleted" ? undefined : version);
		}
	};
}

/**
 * Enqueues all primed resources once, as if they had been created, with a lower priority than changes that
 * happen meanwhile. Resources deleted since then are skipped: their deletion was enqueued. With `shards`, only what is
 * in one of them.
 *
 * The requests for managed resources collect in the queue until all primed resources of watched types are
 * mapped: each managed resource is reconciled once, however many resources map to it. Live changes don't wait
 * for that. The wait has a limit, since mappers may be slow.
 */
export async function enqueuePrimed(
	{ cache, updaters, reconciler, maps }: ControllerComponents,
	{ controller, runtime, limits }: Pick<RunEnvironment, "controller" | "runtime" | "limits">,
	signal: AbortSignal,
	shards?: ReadonlySet<number>,
): Promise<void> {
	const limitMs = pauseMs(maps.size, limits, shards);
	using pause = new BackgroundPause(reconciler.pool, runtime.clock, limitMs, signal);
	for (const updater of updaters.toReversed()) {
		const isManaged = updater.type.key === controller.manages.key;
		let queued = 0;
		for (const id of cache.ids(updater.type, "*")) {
			const primed = updater.get(id);
			const map = isManaged && !id.region ? undefined : maps.get(updater.type.key);
			if (primed !== undefined) {
				map?.addPrimed(primed, shards);
			}
			if (map === undefined && primed !== undefined && isIn(shards, id)) {
				reconciler.enqueue(id, "background");
			}
			queued += 1;
			if (queued % eventsPerTurn === 0) {
				await yieldToEventLoop();
				if (map !== undefined || pause.isOver) {
					await (map?.pool ?? reconciler.pool).room(readyLimit);
				}
				signal.throwIfAborted();
			}
		}
	}
	await Promise.race([pause.over, allMapped([...maps.values()])]);
}

/** Whether the resource is in one of the shards, or all are meant. */
function isIn(shards: ReadonlySet<number> | undefined, id: ID): boolean {
	return shards === undefined || shards.has(shardOf(nameKey(id)));
}

/** How long background work waits. A shard that moves holds up nothing: some of its resources may be reconciled twice. */
function pauseMs(
	maps: number,
	{ mapPrimedMs }: RunEnvironment["limits"],
	shards: ReadonlySet<number> | undefined,
): number {
	return maps === 0 || shards !== undefined ? 0 : mapPrimedMs;
}

/** Resolves when all resources that are ready to be mapped now are mapped, or have failed. */
async function allMapped(maps: readonly MappingQueue[]): Promise<void> {
	await Promise.all(
		maps.map(async ({ pool }) => {
			await pool.room(1);
			await pool.idle();
		}),
	);
}

/** A pause of the background work of a pool. It ends when it is disposed of or the signal aborts, or after a limit. */
class BackgroundPause {
	readonly #ended = Promise.withResolvers<void>();
	readonly #pool: Reconciler["pool"];
	readonly #signal: AbortSignal;
	readonly #timer: Timer | undefined;
	isOver = false;

	/** @param limitMs - 0 if there is no pause at all. */
	constructor(pool: Reconciler["pool"], clock: Clock, limitMs: number, signal: AbortSignal) {
		this.#pool = pool;
		this.#signal = signal;
		if (limitMs === 0) {
			this.isOver = true;
			this.#ended.resolve();
			return;
		}
		pool.pauseBackground();
		this.#timer = clock.setTimer(limitMs, this.#end);
		signal.addEventListener("abort", this.#end, { once: true });
	}

	/** Resolves when it is over. */
	get over(): Promise<void> {
		return this.#ended.promise;
	}

	[Symbol.dispose](): void {
		this.#end();
	}

	readonly #end = (): void => {
		if (!this.isOver) {
			this.isOver = true;
			this.#timer?.cancel();
			this.#signal.removeEventListener("abort", this.#end);
			this.#pool.resumeBackground();
			this.#ended.resolve();
		}
	};
}

/** If a predicate throws, the change counts as matched: an extra reconcile is safer than a missing one. */
function guarded(when: ChangePredicate, type: ResourceType, logger: Logger): ChangePredicate {
	return (change) => {
		try {
			return when(change);
		} catch (err) {
			logger.warn({ type: type.key, err }, "predicate `when` failed");
			return true;
		}
	};
}
