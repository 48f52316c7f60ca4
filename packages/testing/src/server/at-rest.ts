import type { ControllerState, ManagerState, QueueState } from "@plinth/controller";

/** Options of `quiesce`. */
export interface QuiesceOptions {
	/**
	 * The names of controllers that always request a requeue: their delayed requests are ignored.
	 */
	readonly alwaysRequeueing?: readonly string[];
}

/**
 * Descriptions of the pending work of all controllers of a cluster; empty if all of them are running, or wait
 * for the lease that another server holds, and nothing is queued or being processed.
 */
export function pendingWork(
	managers: readonly ManagerState[],
	{ alwaysRequeueing = [] }: QuiesceOptions = {},
): readonly string[] {
	const isLed = managers.some(({ holdsLease }) => holdsLease);
	const opening = shardsToOpen(managers);
	const pending = managers.flatMap(({ controllers }) =>
		controllers.flatMap((controller) => {
			const pending = pendingWorkOf(controller, isLed, alwaysRequeueing.includes(controller.name));
			return pending === undefined ? [] : [`${controller.name} ${pending}`];
		}),
	);
	return [...pending, ...opening];
}

/** The sharded controllers with shards that no server works on. */
function shardsToOpen(managers: readonly ManagerState[]): readonly string[] {
	const left = new Map<string, number>();
	for (const { name, run } of managers.flatMap(({ controllers }) => controllers)) {
		if (run?.shards !== undefined) {
			left.set(name, (left.get(name) ?? run.shards.count) - run.shards.open.length);
		}
	}
	return [...left]
		.filter(([, count]) => count > 0)
		.map(([name, count]) => `${name} has ${count} shards that no server works on yet`);
}

function pendingWorkOf(
	{ phase, run, lastError, name }: ControllerState,
	isLed: boolean,
	requeues: boolean,
): string | undefined {
	if (phase === "stopped" || (phase === "waiting-for-lease" && isLed)) {
		return undefined;
	}
	if (phase !== "running" || run === undefined) {
		const error = lastError === undefined ? "" : `, last error: ${lastError.message}`;
		return `is ${phase}${error}`;
	}
	for (const [queue, state] of Object.entries({ [name]: run.requests, ...run.mappings })) {
		const what = queued(state, requeues && queue === name);
		if (what !== "") {
			const hint =
				queue === name && isOnlyDelayed(state)
					? `; if it always requeues, call quiesce({ alwaysRequeueing: ["${name}"] })`
					: "";
			return `has in its queue of ${queue}: ${what}${hint}`;
		}
	}
	return undefined;
}

/** Whether it has nothing but requests that wait for their time: of failures, or of a reconciler that requeues. */
function isOnlyDelayed({ live, background, active, held }: QueueState): boolean {
	return live + background + active + held === 0;
}

function queued(state: QueueState, delayedAreFine: boolean): string {
	const { live, background, active, held } = state;
	const delayed = delayedAreFine ? 0 : state.delayed;
	return Object.entries({ live, background, delayed, active, held })
		.filter(([, count]) => count > 0)
		.map(([which, count]) => `${count} ${which}`)
		.join(", ");
}
