import { conditionsOf, type ReportedCondition, stateName } from "@plinth/documents";
import { Condition_State, type Resource } from "@plinth/proto";
import { isMarkedForDeletion } from "@plinth/resource";
import type { Tone } from "./tone.ts";

/** What the status of a resource with a condition that is false contains. */
export const falseConditionWords = "=false";

/** The tone of one condition. A stale one says nothing sure. */
export function conditionTone({ condition, isCurrent }: ReportedCondition): Tone {
	if (!isCurrent) {
		return "unsure";
	}
	switch (condition.state) {
		case Condition_State.TRUE:
			return "good";
		case Condition_State.FALSE:
			return "bad";
		default:
			return "unsure";
	}
}

/** The status of a resource in one cell. */
export interface StatusSummary {
	readonly text: string;
	readonly tone: Tone;
}

/** `Healthy, Ready=False (Refused)`: a condition that holds is only named, and `?` marks one of an older generation. */
export function statusOf(resource: Resource): StatusSummary {
	const conditions = conditionsOf(resource);
	const parts = conditions.map(({ condition: { type, state, reason }, isCurrent }) => {
		const stale = isCurrent ? "" : "?";
		return state === Condition_State.TRUE
			? `${type}${stale}`
			: `${type}=${stateName(state)}${stale}${reason === "" ? "" : ` (${reason})`}`;
	});
	if (isMarkedForDeletion(resource)) {
		return { text: ["Deleting", ...parts].join(", "), tone: "unsure" };
	}
	const tones = new Set(conditions.map(conditionTone));
	const tone = (["bad", "unsure", "good"] as const).find((each) => tones.has(each)) ?? "plain";
	return { text: parts.join(", "), tone };
}
