import type { RegisterChange } from "./storage-record.ts";

/** What a register was from a revision on. */
export interface Phase {
	readonly revision: number;
	/** Absent if there was nothing. */
	readonly text?: string;
}

/** What each register was, one thing after the other, as the storage says. */
export class RegisterPhases {
	readonly #phases: ReadonlyMap<string, readonly Phase[]>;

	constructor(changes: readonly RegisterChange[]) {
		this.#phases = Map.groupBy(changes, ({ register }) => register);
	}

	/** All that it was, in order. It begins with nothing, at revision 0. */
	of(register: string): readonly Phase[] {
		return [{ revision: 0 }, ...(this.#phases.get(register) ?? [])];
	}
}
