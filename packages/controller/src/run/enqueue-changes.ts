import type { ResourceType } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import type { Change, ChangePredicate } from "../define/change.ts";
import { yieldToEventLoop } from "../queue/pump.ts";
import type { ControllerComponents } from "./components.ts";
import { eventsPerTurn } from "./prime-cache.ts";
import type { RunEnvironment } from "./run-environment.ts";

/** While more keys than this are ready, whoever can wait adds no more. */
export const readyLimit = 10_000;

/** What a change of the type, already in the cache, puts into the queues. */
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
 * Queues everything that priming has cached, once, as if witnessed, with less priority than what
 * happens meanwhile. What has been deleted since is not: its deletion was witnessed. Watched types go
 * first, so that most of what they are mapped to is queued already when its own turn comes.
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

/** A predicate that fails lets the change pass: a reconcile too many harms less than one too few. */
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
