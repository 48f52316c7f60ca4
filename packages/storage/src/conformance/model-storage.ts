import type { Resource } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import type { Mutation } from "../mutation.ts";
import { idOf } from "./test-resources.ts";

/** The result of a commit. */
export type ModelOutcome =
	| { readonly kind: "changed" }
	| { readonly kind: "unchanged" }
	| { readonly kind: "cas" | "uid"; readonly mutations: readonly number[] };

/** The naive storage that backends are compared with: a map, and a second implementation of the rules. */
export class ModelStorage {
	#stored = new Map<string, Resource>();

	/** Applies a commit at the version that the backend assigned. */
	commit(mutations: readonly Mutation[], version: string): ModelOutcome {
		const next = new Map(this.#stored);
		const wrongVersions: number[] = [];
		const wrongUids: number[] = [];
		let changes = 0;
		mutations.forEach((mutation, index) => {
			const id = mutation.op === "put" ? idOf(mutation.resource) : mutation.id;
			const stored = this.#stored.get(nameKey(id));
			const storedVersion = stored?.version ?? "";
			const sameVersion = storedVersion === (mutation.expectedVersion ?? storedVersion);
			const otherUid = stored !== undefined && id.uid !== "" && stored.id?.uid !== id.uid;
			if (
				mutation.op === "delete" &&
				(stored === undefined || (otherUid && mutations.length === 1))
			) {
				return;
			}
			const absent = mutation.expectedVersion === "";
			if (otherUid && (mutation.op === "delete" || !absent)) {
				wrongUids.push(index);
			} else if (!sameVersion) {
				wrongVersions.push(index);
			} else if (mutation.op === "put") {
				next.set(nameKey(id), { ...mutation.resource, version });
				changes += 1;
			} else if (mutation.op === "delete") {
				next.delete(nameKey(id));
				changes += 1;
			}
		});
		if (wrongUids.length > 0) {
			return { kind: "uid", mutations: wrongUids };
		}
		if (wrongVersions.length > 0) {
			return { kind: "cas", mutations: wrongVersions };
		}
		this.#stored = next;
		return { kind: changes > 0 ? "changed" : "unchanged" };
	}

	/** The resource stored under a key. */
	find(key: string): Resource | undefined {
		return this.#stored.get(key);
	}

	/** Everything that is stored. */
	resources(): readonly Resource[] {
		return [...this.#stored.values()];
	}
}
