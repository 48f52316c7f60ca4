import { Phase } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type {
	ControllerOverview,
	TypeOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

/** Whether a controller fails, does not run although it should, or has reconciles that take too long. */
export function needsAttention(overview: ControllerOverview): boolean {
	const { controller, failuresPerSecond, stillRunning } = overview;
	const failing = controller?.requests?.failing ?? 0;
	return !runsWell(overview) || failing > 0 || failuresPerSecond > 0 || stillRunning > 0;
}

/** Whether it runs, or waits for another server to end. */
function runsWell({ controller }: ControllerOverview): boolean {
	const phase = controller?.phase;
	return phase === Phase.RUNNING || phase === Phase.WAITING_FOR_LEASE;
}

/** The controllers: first those that do not run, then those that fail most, then the busiest. */
export function controllersByAttention(
	all: readonly ControllerOverview[],
): readonly ControllerOverview[] {
	return sorted(all, (overview) => {
		const { controller, failuresPerSecond, stillRunning, reconcilesPerSecond } = overview;
		const { failing = 0, live = 0, background = 0 } = controller?.requests ?? {};
		return [
			...[Number(!runsWell(overview)), failing, stillRunning, failuresPerSecond],
			...[live + background, reconcilesPerSecond],
		];
	});
}

/**
 * The types: first those with most false conditions, then with most stale ones, then with most resources that are being
 * deleted, then the busiest.
 */
export function typesByAttention(all: readonly TypeOverview[]): readonly TypeOverview[] {
	return sorted(all, (type) => [
		...[Number(type.withFalseCondition), Number(type.withStaleCondition)],
		...[Number(type.beingDeleted ?? 0n), type.writesPerSecond, Number(type.resources)],
	]);
}

/** Sorted by several figures, the highest first; where all are the same, in the former order. */
function sorted<T>(all: readonly T[], figuresOf: (one: T) => readonly number[]): readonly T[] {
	return all
		.map((one) => ({ one, figures: figuresOf(one) }))
		.sort((a, b) => {
			for (const [at, figure] of a.figures.entries()) {
				const difference = (b.figures[at] ?? 0) - figure;
				if (difference !== 0) {
					return difference;
				}
			}
			return 0;
		})
		.map(({ one }) => one);
}
