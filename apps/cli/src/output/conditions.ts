import { type Condition, Condition_State, type Resource } from "@plinth/proto";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import type { Cell, Tone } from "./table.ts";

/** A condition, with the metadata of its status entry. */
export interface Reported {
	/** The reporter: the key of the status entry. */
	readonly key: string;
	readonly condition: Condition;
	/** Whether the reporter has observed the current generation. */
	readonly isCurrent: boolean;
	/** When the status was written, in milliseconds since the epoch. */
	readonly updatedAtMs: number | undefined;
}

/** All conditions of a resource, ordered by reporter. */
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
