import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Condition, Condition_State, type Resource } from "@plinth/proto";

/** A condition, with what its status entry says of all. */
export interface ReportedCondition {
	/** The reporter: the key of the status entry. */
	readonly reporter: string;
	readonly condition: Condition;
	/** Whether it describes the current generation of the resource. */
	readonly isCurrent: boolean;
	/** When it was written, in milliseconds since the epoch. */
	readonly updatedMs: number | undefined;
}

/** All conditions of a resource, ordered by reporter. */
export function conditionsOf({ status, generation }: Resource): readonly ReportedCondition[] {
	return Object.entries(status)
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.flatMap(([reporter, { conditions, observedGeneration, updatedAt }]) =>
			conditions.map((condition) => ({
				reporter,
				condition,
				isCurrent: observedGeneration === generation,
				updatedMs: updatedAt && timestampMs(updatedAt),
			})),
		);
}

/** `True`, `False` or `Unknown`. */
export function stateName(state: Condition_State): "True" | "False" | "Unknown" {
	switch (state) {
		case Condition_State.TRUE:
			return "True";
		case Condition_State.FALSE:
			return "False";
		default:
			return "Unknown";
	}
}
