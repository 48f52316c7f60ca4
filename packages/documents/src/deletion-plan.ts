import {
	PlanDeletionResponse_Effect_Kind as Kind,
	PlanDeletionResponse_Outcome as Outcome,
	type PlanDeletionResponse,
	type PlanDeletionResponse_Effect,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { reasonOf } from "./deletion-reasons.ts";

/** The name of a resource in messages about references. */
export function nameOfKey(key: ResourceKey | undefined): string {
	if (key === undefined) {
		return "";
	}
	const path = [key.partition, key.namespace, key.name].filter((part) => part !== "").join("/");
	return `${key.group}.${key.kind} ${path}${key.region === "" ? "" : ` in ${key.region}`}`;
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

/** What a deletion would do as a whole, or what one that has begun waits for: one phrase. */
export function outcomeOf(plan: PlanDeletionResponse, isMarked: boolean): string {
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

/** What happens to one resource of a plan. */
export function effectOf({ kind }: PlanDeletionResponse_Effect): string {
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

/** What a resource of a plan waits for, or what blocks it: each obstacle as a phrase. */
export function obstaclesOf(effect: PlanDeletionResponse_Effect): readonly string[] {
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
