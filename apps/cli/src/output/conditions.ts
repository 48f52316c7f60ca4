import { conditionsOf, type ReportedCondition, stateName } from "@plinth/documents";
import { type Condition, Condition_State, type Resource } from "@plinth/proto";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import type { Cell, Tone } from "./table.ts";

/** The conditions of a resource in one cell: `Healthy=True, Ready=False`; `?` marks those of an older generation. */
export function statusCell(resource: Resource): Cell {
	const conditions = conditionsOf(resource);
	const parts = conditions.map(
		({ condition, isCurrent }) =>
			`${condition.type}=${stateName(condition.state)}${isCurrent ? "" : "?"}${reasonOf(condition)}`,
	);
	if (isMarkedForDeletion(resource)) {
		const finalizers = finalizersOf(resource).join(", ");
		return { text: [`Deleting (waiting for ${finalizers})`, ...parts].join(", "), tone: "unsure" };
	}
	return { text: parts.join(", "), tone: toneOf(conditions) };
}

/** The reason why a condition does not hold, if given. */
function reasonOf({ state, reason }: Condition): string {
	return state === Condition_State.TRUE || reason === "" ? "" : ` (${reason})`;
}

function toneOf(conditions: readonly ReportedCondition[]): Tone {
	if (conditions.length === 0) {
		return "plain";
	}
	if (conditions.some(({ condition }) => condition.state === Condition_State.FALSE)) {
		return "bad";
	}
	return conditions.every(
		({ condition, isCurrent }) => isCurrent && condition.state === Condition_State.TRUE,
	)
		? "good"
		: "unsure";
}
