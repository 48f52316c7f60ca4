import { type Condition, Condition_State, type Resource } from "@plinth/proto";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import type { Cell, Tone } from "./table.ts";

/** A condition, and what its status says about it. */
export interface Reported {
	/** Who reports: the key of the status. */
	readonly key: string;
	readonly condition: Condition;
	/** Whether the report is about the content as it is now. */
	readonly isCurrent: boolean;
	/** When the status was written, in milliseconds since the epoch. */
	readonly updatedAtMs: number | undefined;
}

/** All conditions of a resource, by who reports them. */
export function conditionsOf({ status, generation }: Resource): readonly Reported[] {
	return Object.entries(status)
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.flatMap(([key, { conditions, observedGeneration, updatedAt }]) =>
			conditions.map((condition) => ({
				key,
				condition,
				isCurrent: observedGeneration === generation,
				updatedAtMs: updatedAt && Number(updatedAt.seconds) * 1_000 + updatedAt.nanos / 1e6,
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

/** The state of a resource in a cell: `Healthy=True, Ready=False`, `?` after what is out of date. */
export function statusCell(resource: Resource): Cell {
	const conditions = conditionsOf(resource);
	const parts = conditions.map(
		({ condition, isCurrent }) =>
			`${condition.type}=${stateName(condition.state)}${isCurrent ? "" : "?"}${reasonOf(condition)}`,
	);
	if (isMarkedForDeletion(resource)) {
		const waits = finalizersOf(resource).join(", ");
		return { text: [`Deleting (waits for ${waits})`, ...parts].join(", "), tone: "unsure" };
	}
	return { text: parts.join(", "), tone: toneOf(conditions) };
}

/** Why it does not hold, where someone says so. */
function reasonOf({ state, reason }: Condition): string {
	return state === Condition_State.TRUE || reason === "" ? "" : ` (${reason})`;
}

function toneOf(conditions: readonly Reported[]): Tone {
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
