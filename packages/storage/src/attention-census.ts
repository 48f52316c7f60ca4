import { Condition_State, type Resource, type Type } from "@plinth/proto";
import { gvkKey, isMarkedForDeletion } from "@plinth/resource";

/** The resources of a type that need attention. A resource may be among several of them. */
export interface AttentionCounts {
	/** Resources with a condition that is FALSE. */
	readonly withFalse: number;
	/** Resources with a condition that describes another generation than the newest one. */
	readonly withStale: number;
	/** Resources that are marked for deletion and wait for their finalizers. */
	readonly beingDeleted: number;
}

/** The counts of a type without resources that need attention. */
export const noAttention: AttentionCounts = { withFalse: 0, withStale: 0, beingDeleted: 0 };

/**
 * Counts, by type, the resources that need attention: by their conditions, or because their deletion waits. A change costs
 * a look at the conditions and the deletion mark of the resource and of the one that it replaces; a query copies the counters.
 *
 * Types whose counters reach zero are removed.
 */
export class AttentionCensus {
	readonly #counts = new Map<string, { -readonly [Count in keyof AttentionCounts]: number }>();

	/** Updates the counters for a change of the resource stored under one name. */
	update(previous: Resource | undefined, next: Resource | undefined): void {
		const before = attentionOf(previous);
		const after = attentionOf(next);
		const [type, nextType] = [previous?.id?.type, next?.id?.type];
		if (before === after && type?.groupVersion === nextType?.groupVersion) {
			return;
		}
		if (before !== 0 && type !== undefined) {
			this.#add(type, before, -1);
		}
		if (after !== 0 && nextType !== undefined) {
			this.#add(nextType, after, 1);
		}
	}

	/** The counters of each type that has resources which need attention, by type key. */
	byType(): ReadonlyMap<string, AttentionCounts> {
		return new Map([...this.#counts].map(([key, counts]) => [key, { ...counts }]));
	}

	#add(type: Type, attention: number, by: 1 | -1): void {
		const key = gvkKey(type);
		let counts = this.#counts.get(key);
		if (counts === undefined) {
			counts = { ...noAttention };
			this.#counts.set(key, counts);
		}
		counts.withFalse += (attention & isFalse) === 0 ? 0 : by;
		counts.withStale += (attention & isStale) === 0 ? 0 : by;
		counts.beingDeleted += (attention & isBeingDeleted) === 0 ? 0 : by;
		if (counts.withFalse === 0 && counts.withStale === 0 && counts.beingDeleted === 0) {
			this.#counts.delete(key);
		}
	}
}

const isFalse = 1;
const isStale = 2;
const isBeingDeleted = 4;

/** Whether a resource has a condition that is FALSE, has one that is stale, and is being deleted: one bit for each. */
function attentionOf(resource: Resource | undefined): number {
	let attention = 0;
	if (resource === undefined) {
		return attention;
	}
	if (isMarkedForDeletion(resource)) {
		attention |= isBeingDeleted;
	}
	// Unlike Object.values, it allocates nothing; most resources have no status.
	for (const key in resource.status) {
		const status = resource.status[key];
		if (status === undefined || status.conditions.length === 0) {
			continue;
		}
		if (status.observedGeneration !== resource.generation) {
			attention |= isStale;
		}
		for (const { state } of status.conditions) {
			if (state === Condition_State.FALSE) {
				attention |= isFalse;
			}
		}
	}
	return attention;
}
