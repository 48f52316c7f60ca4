import {
	PlanDeletionResponse_Effect_Kind as Kind,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
	type PlanDeletionResponse_Effect,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { reasonOf } from "./deletion-reasons.ts";
import { printable } from "./printable.ts";
import { plainCell, type Row, renderTable, type TableOptions } from "./table.ts";

/** The name of a resource in messages about references. */
export function nameOfKey(key: ResourceKey | undefined): string {
	if (key === undefined) {
		return "";
	}
	const path = [key.partition, key.namespace, key.name].filter((part) => part !== "").join("/");
	return `${key.group}.${key.kind} ${path}${key.region === "" ? "" : ` in ${key.region}`}`;
}

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

/**
 * What the deletion of a resource waits for, with what is in the way of that: each obstacle as one phrase. Empty if it
 * waits for nothing.
 */
export function waitsOf(plan: PlanDeletionResponse): readonly string[] {
	const [root] = plan.effects;
	if (plan.outcome !== Outcome.WAITS || root === undefined) {
		return [];
	}
	const byName = new Map(plan.effects.map((each) => [nameOfKey(each.resource), each]));
	const phrases = root.waitsFor.map((key) => {
		const name = nameOfKey(key);
		const effect = byName.get(name);
		const obstacles = effect === undefined ? [] : obstaclesOf(effect);
		if (obstacles.length === 0) {
			return name;
		}
		const verb = effect?.kind === Kind.BLOCKED ? "is blocked by" : "waits for";
		return `${name}, which ${verb} ${obstacles.join(", ")}`;
	});
	return [...root.finalizers.map(reasonOf), ...phrases, ...hiddenOf(root), ...root.unknown];
}

function outcomeOf(plan: PlanDeletionResponse, isMarked: boolean): string {
	const [root] = plan.effects;
	const obstacles = root === undefined ? "" : obstaclesOf(root).join(", ");
	switch (plan.outcome) {
		case Outcome.REFUSED:
			return `would be refused: it is blocked by ${obstacles}`;
		case Outcome.WAITS:
			return isMarked ? `waits for ${obstacles}` : `would be accepted, and wait for ${obstacles}`;
		default:
			return `${isMarked ? "is being completed" : "would be accepted"}${countsOf(plan)}`;
	}
}

/** As in `: deletes 2 more, clears references of 1`. */
function countsOf({ counts }: PlanDeletionResponse): string {
	const { deleted = 1, cleared = 0, disowned = 0 } = counts ?? {};
	const parts = [
		...(deleted > 1 ? [`${deleted - 1} more deleted with it`] : []),
		...(cleared > 0 ? [`references cleared in ${cleared}`] : []),
		...(disowned > 0 ? [`owner references removed from ${disowned}`] : []),
	];
	return parts.length === 0 ? "" : `: ${parts.join(", ")}`;
}

function effectOf({ kind }: PlanDeletionResponse_Effect): string {
	switch (kind) {
		case Kind.DELETED:
			return "deleted";
		case Kind.WAITS:
			return "marked, waits";
		case Kind.BLOCKED:
			return "stays while it is blocked";
		case Kind.BLOCKS:
			return "blocks";
		case Kind.CLEARED:
			return "reference cleared";
		case Kind.DISOWNED:
			return "owner reference removed";
		default:
			return "";
	}
}

function obstaclesOf(effect: PlanDeletionResponse_Effect): readonly string[] {
	const finalizers = effect.finalizers.map((finalizer) => `finalizer ${finalizer}`);
	return [
		...finalizers,
		...effect.waitsFor.map(nameOfKey),
		...hiddenOf(effect),
		...effect.unknown.map((deployment) => `what ${deployment} may have`),
	];
}

function hiddenOf({ hidden }: PlanDeletionResponse_Effect): readonly string[] {
	return hidden === 0 ? [] : [`${hidden} that you may not read`];
}
