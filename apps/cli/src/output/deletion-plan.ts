import { effectOf, nameOfKey, obstaclesOf, outcomeOf } from "@plinth/documents";
import type {
	PlanDeletionResponse,
	PlanDeletionResponse_Effect,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { printable } from "./printable.ts";
import { plainCell, type Row, renderTable, type TableOptions } from "./table.ts";

/** What a deletion would do, or what one that has begun waits for. */
export function showPlan(
	plan: PlanDeletionResponse,
	{ isMarked, ...options }: TableOptions & { readonly isMarked: boolean },
): string {
	const others = plan.effects.filter(({ level }) => level > 0);
	const rows = effectRows(others);
	const columns = ["RESOURCE", "EFFECT", "WAITS FOR"].map((heading, at) => ({
		heading,
		cut: at > 0,
	}));
	const table = rows.length === 0 ? "" : renderTable(columns, rows, options);
	const notes = [
		...(plan.hidden > 0 ? [`${plan.hidden} more, which you may not read`] : []),
		...(plan.isPartial ? ["there is more than the server has examined"] : []),
	];
	return `${outcomeOf(plan, isMarked)}\n${table}${notes.map((note) => `${note}\n`).join("")}`;
}

/** What happens to resources: a row for each, with what it waits for. */
export function effectRows(effects: readonly PlanDeletionResponse_Effect[]): readonly Row[] {
	return effects.map((effect) =>
		[nameOfKey(effect.resource), effectOf(effect), obstaclesOf(effect).join(", ")].map((text) =>
			plainCell(printable(text)),
		),
	);
}
