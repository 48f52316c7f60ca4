import type { WatchAdmission } from "@plinth/resource-service";
import type { CallMetrics } from "../operations/call-metrics.ts";
import type { CallGate } from "./call-gate.ts";
import type { CallLimits } from "./call-limits.ts";

/** Admits the watches of sets: each counts as a stream of its own would, and is measured. */
export function admitWatches(
	gate: Pick<CallGate, "enterWatch">,
	metrics: Pick<CallMetrics, "watchBegan">,
	{ watchesPerSet }: Pick<CallLimits, "watchesPerSet">,
): WatchAdmission {
	return {
		watchesPerSet,
		admit(call, index) {
			const leave = index === 0 ? undefined : gate.enterWatch(call);
			const measure = metrics.watchBegan();
			return (failure) => {
				leave?.();
				measure(failure);
			};
		},
	};
}
