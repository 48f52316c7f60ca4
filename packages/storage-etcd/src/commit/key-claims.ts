import type { PendingCommit } from "./pending-commit.ts";
import type { DecidedCommit } from "./transaction.ts";

/** Which keys commits write, and which ones they only look at. */
export class KeyClaims {
	readonly #writes = new Map<string, number>();
	readonly #reads = new Map<string, number>();

	/** Whether a key of the commit is written here. */
	writes({ keys }: PendingCommit): boolean {
		return this.#writes.size > 0 && keys.some((key) => this.#writes.has(key));
	}

	/** Whether a key of the commit is written here, or it writes one that is read here. */
	conflicts(pending: PendingCommit): boolean {
		return (
			this.writes(pending) ||
			(this.#reads.size > 0 &&
				pending.keys.some(
					(key, index) => this.#reads.has(key) && pending.mutations[index]?.op !== "assert",
				))
		);
	}

	/** Claims the keys of a commit. */
	add(commit: DecidedCommit): void {
		this.#count(commit, 1);
	}

	/** Gives up the keys of a commit. */
	remove(commit: DecidedCommit): void {
		this.#count(commit, -1);
	}

	#count({ pending, steps }: DecidedCommit, by: number): void {
		for (const [index, key] of pending.keys.entries()) {
			const claims = steps[index]?.kind === "none" ? this.#reads : this.#writes;
			const count = (claims.get(key) ?? 0) + by;
			if (count === 0) {
				claims.delete(key);
			} else {
				claims.set(key, count);
			}
		}
	}
}
