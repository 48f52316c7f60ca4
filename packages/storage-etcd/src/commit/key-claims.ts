import type { PendingCommit } from "./pending-commit.ts";
import type { DecidedCommit } from "./transaction.ts";

/** The keys that commits write or only read. */
export class KeyClaims {
	readonly #writes = new Map<string, number>();
	readonly #reads = new Map<string, number>();

	/** Whether a claimed commit writes a key of this commit. */
	writes({ keys }: PendingCommit): boolean {
		return this.#writes.size > 0 && keys.some((key) => this.#writes.has(key));
	}

	/** Whether the commit and a claimed commit share a key that one of them writes. */
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

	/** Releases the keys of a commit. */
	remove(commit: DecidedCommit): void {
		this.#count(commit, -1);
	}

	#count({ pending, effects }: DecidedCommit, by: number): void {
		for (const [index, key] of pending.keys.entries()) {
			const claims = effects[index]?.kind === "none" ? this.#reads : this.#writes;
			const count = (claims.get(key) ?? 0) + by;
			if (count === 0) {
				claims.delete(key);
			} else {
				claims.set(key, count);
			}
		}
	}
}
