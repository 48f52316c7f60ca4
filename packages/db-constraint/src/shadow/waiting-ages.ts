import {
	Lifecycle,
	type MetaOwner,
	type Shadow,
	type Source,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import type { ShadowIndex } from "./shadow-index.ts";
import type { StoredShadow } from "./shadow-records.ts";

/**
 * For how long shadows have been in states that end after a time: CHECKING, a tentative source, an owner that was found
 * not valid, an owner that must reference its ownee.
 *
 * Invariant: the age of a state is measured by the monotonic clock of this server, from when the index of this server
 * has first contained it. So
 * - no state expires early, whatever clocks say: it was stored before it was in any index, and after a restart it counts from 0;
 * - a state expires in time at whichever server controls the shadow: all servers measure all ages, whether they control
 *   the shadow or not. So a shadow that moves among servers waits no longer than one that stays, as long as these run,
 *   but for the time by which their indexes lag.
 *
 * It contains nothing but states that last.
 */
export class WaitingAges {
	readonly #clock: Clock;
	/** When each state of a shadow was first seen, by name of the shadow. */
	readonly #sinceMs = new Map<string, ReadonlyMap<string, number>>();

	/** Follows the index for as long as it exists. */
	constructor(index: Pick<ShadowIndex, "onChange">, clock: Clock) {
		this.#clock = clock;
		index.onChange((stored, change) => {
			const states = change === "stored" ? waitingStates(stored) : [];
			if (states.length === 0) {
				this.#sinceMs.delete(stored.name);
				return;
			}
			const before = this.#sinceMs.get(stored.name);
			const now = clock.monotonic();
			this.#sinceMs.set(
				stored.name,
				new Map(states.map((state) => [state, before?.get(state) ?? now])),
			);
		});
	}

	/** The age of a state in milliseconds; 0 if the index does not contain it yet. */
	ageMs(shadowName: string, state: string): number {
		const sinceMs = this.#sinceMs.get(shadowName)?.get(state);
		return sinceMs === undefined ? 0 : this.#clock.monotonic() - sinceMs;
	}
}

function waitingStates(stored: StoredShadow): readonly string[] {
	const { shadow } = stored;
	const states: string[] = [];
	if (
		shadow.lifecycle === Lifecycle.CHECKING ||
		(isPlanted("revert DELETING") && shadow.lifecycle === Lifecycle.DELETING)
	) {
		states.push(checkingState(stored));
	}
	for (const source of shadow.sources) {
		if (source.tentative) {
			states.push(tentativeState(source));
		}
	}
	for (const owner of shadow.metaOwners) {
		if (owner.notValidAnswers > 0) {
			states.push(notValidState(shadow, owner));
		}
	}
	if (requiresReferences(shadow)) {
		states.push(requiringState(shadow));
	}
	return states;
}

/** The state of a shadow that is CHECKING. */
export function checkingState({ version }: StoredShadow): string {
	return `checking ${version}`;
}

/** The state of a source that is tentative since its latest establishment. */
export function tentativeState({ deployment, establishment }: Source): string {
	return `tentative ${deployment?.uid} ${establishment}`;
}

/** The state of an owner that was found not valid so often, and not again yet. */
export function notValidState(
	{ uid }: Shadow,
	{ owner, ownerUid, notValidAnswers }: MetaOwner,
): string {
	return `not valid ${uid} ${ownerUid} ${owner?.region ?? ""} ${notValidAnswers}`;
}

/** Whether some owner must reference the resource of the shadow. */
export function requiresReferences({ metaOwners }: Shadow): boolean {
	return metaOwners.some(({ requiresOwnerReference }) => requiresOwnerReference);
}

/** The state of a shadow some of whose owners must reference it. */
export function requiringState({ uid }: Shadow): string {
	return `requires ${uid}`;
}
