import { isOfServer } from "@plinth/documents";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	type PlanDeletionResponse_Effect,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { nodeId, type ResourceName, type Waiting } from "./graph-model.ts";

type Effect = Pick<
	PlanDeletionResponse_Effect,
	"resource" | "kind" | "finalizers" | "waitsFor" | "hidden" | "unknown"
>;

/**
 * What is on the way from a deletion to what it waits for, each with what it waits for itself.
 *
 * @param effects - of the plan of the deletion: the resource itself first. Only effects that are in the way count.
 */
export function deletionWaitsOf(effects: readonly Effect[]): readonly Waiting[] {
	const inTheWay = new Map<string, Waiting>();
	for (const [at, effect] of effects.entries()) {
		const { resource, waitsFor, finalizers, hidden, unknown } = effect;
		const obstacles = waitsFor.length + finalizers.length + hidden + unknown.length;
		if (resource !== undefined && (waitsFor.length > 0 || (at === 0 && obstacles > 0))) {
			inTheWay.set(nodeId(resource), waitingOf(resource, effect, at === 0));
		}
	}
	const ends = [...inTheWay.values()].flatMap(({ waitsFor }) => waitsFor);
	const byId = new Map(
		effects.flatMap((each) => (each.resource ? [[nodeId(each.resource), each] as const] : [])),
	);
	for (const name of ends) {
		const id = nodeId(name);
		if (!inTheWay.has(id)) {
			inTheWay.set(id, waitingOf(name, byId.get(id), false));
		}
	}
	return [...inTheWay.values()];
}

function waitingOf(
	{ group, kind, partition, namespace, name, region }: ResourceName,
	effect: Effect | undefined,
	isRoot: boolean,
): Waiting {
	return {
		name: { group, kind, partition, namespace, name, region },
		waitsFor: effect?.waitsFor ?? [],
		isMarked: isRoot || effect?.kind === Kind.WAITS,
		note: noteOf(effect),
	};
}

/** Why a resource is still there, in a few words. */
function noteOf(effect: Effect | undefined): string {
	if (effect === undefined) {
		return "not deleted yet";
	}
	const finalizers = effect.finalizers.filter((each) => !isOfServer(each));
	const { hidden, unknown, waitsFor, kind } = effect;
	const obstacles = [
		...(finalizers.length > 0
			? [`finalizer${finalizers.length > 1 ? "s" : ""} ${finalizers.join(", ")}`]
			: []),
		...(waitsFor.length === 1
			? waitsFor.map((each) => `${each.kind} ${each.name}`)
			: waitsFor.length > 1
				? [`${waitsFor.length} resources`]
				: []),
		...(hidden > 0 ? [`${hidden} that you may not read`] : []),
		...unknown,
	];
	if (obstacles.length === 0) {
		return kind === Kind.BLOCKS ? "blocks the deletion" : "not deleted yet";
	}
	return `${kind === Kind.BLOCKED ? "blocked by" : "waits for"} ${obstacles.join(", ")}`;
}
