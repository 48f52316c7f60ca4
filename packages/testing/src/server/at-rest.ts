import type { ControllerState, ManagerState, QueueState } from "@plinth/controller";

/** What rest is. */
export interface RestOptions {
	/**
	 * The names of controllers that ask to be called again for ever: their requests which wait for
	 * their time don't count.
	 */
	readonly requeueing?: readonly string[];
}

/**
 * What the controllers of a cluster's managers still have to do, in words; empty where all of them
 * run, or leave it to the server that holds the lease, and nothing is queued or under way anywhere.
 */
export function unrest(
	managers: readonly ManagerState[],
	{ requeueing = [] }: RestOptions = {},
): readonly string[] {
	const isLed = managers.some(({ holdsLease }) => holdsLease);
	return managers.flatMap(({ controllers }) =>
		controllers.flatMap((controller) => {
			const busy = busyness(controller, isLed, requeueing.includes(controller.name));
			return busy === undefined ? [] : [`${controller.name} ${busy}`];
		}),
	);
}

function busyness(
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
			return `has in its queue of ${queue}: ${what}`;
		}
	}
	return undefined;
}

function queued(state: QueueState, delayedAreFine: boolean): string {
	const { live, background, active, held } = state;
	const delayed = delayedAreFine ? 0 : state.delayed;
	return Object.entries({ live, background, delayed, active, held })
		.filter(([, count]) => count > 0)
		.map(([which, count]) => `${count} ${which}`)
		.join(", ");
}
