import type { ResourceType } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import type { Change, ChangePredicate } from "../define/change.ts";
import { yieldToEventLoop } from "../queue/pump.ts";
import type { ControllerComponents } from "./components.ts";
import { eventsPerTurn } from "./prime-cache.ts";
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
	const when = guarded(map?.when ?? controller.when, type, logger);
	if (map !== undefined) {
		return (change) => {
			if (when(change)) {
				map.add(change);
			}
		};
	}
	return (change) => {
		const { id } = change.kind === "deleted" ? change.previous : change.current;
		if (id !== undefined && when(change)) {
			reconciler.enqueue(id, "live");
		}
	};
}

/**
 * Enqueues all primed resources once, as if they had been created, with a lower priority than changes that
 * happen meanwhile. Resources deleted since then are skipped: their deletion was enqueued. Watched types
 * come first, so that most managed resources are queued already when their own type is processed.
 */
export async function enqueuePrimed(
	{ cache, updaters, reconciler, maps }: ControllerComponents,
	signal: AbortSignal,
): Promise<void> {
	for (const updater of updaters.toReversed()) {
		const map = maps.get(updater.type.key);
		const pool = map?.pool ?? reconciler.pool;
		let queued = 0;
		for (const id of cache.ids(updater.type)) {
			const primed = updater.get(id);
			if (primed !== undefined) {
				if (map === undefined) {
					reconciler.enqueue(id, "background");
				} else {
					map.addPrimed(primed);
				}
			}
			queued += 1;
			if (queued % eventsPerTurn === 0) {
				await yieldToEventLoop();
				await pool.room(readyLimit);
				signal.throwIfAborted();
			}
		}
	}
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
