import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { strictest } from "../shadow/shadow.ts";

/** A reference and its field. */
export interface ModelReference {
	readonly field: string;
	readonly target: string;
	readonly rule: OnDelete;
}

/** A resource of the model. */
export interface ModelResource {
	references: readonly ModelReference[];
	isHeld: boolean;
	isMarked: boolean;
}

/**
 * The specified behavior of references, implemented naively: repeats all rules until nothing changes.
 */
export class NaiveModel {
	readonly resources = new Map<string, ModelResource>();

	/** Creates or replaces a resource. Returns whether that is allowed. */
	write(key: string, references: readonly ModelReference[], isHeld: boolean): boolean {
		const stored = this.resources.get(key);
		const mayHave = ({ target, rule }: ModelReference) =>
			target === key ||
			stored?.references.some((old) => old.target === target && old.rule === rule) ||
			this.resources.get(target)?.isMarked === false;
		if (stored?.isMarked || !references.every(mayHave)) {
			return false;
		}
		this.resources.set(key, { references, isHeld: stored?.isHeld ?? isHeld, isMarked: false });
		this.settle();
		return true;
	}

	/** Deletes a resource. Returns whether that is allowed. */
	delete(key: string): boolean {
		const stored = this.resources.get(key);
		if (stored === undefined || stored.isMarked) {
			return true;
		}
		if (this.#isBlocked(key)) {
			return false;
		}
		stored.isMarked = true;
		this.settle();
		return true;
	}

	/** Removes the user's finalizer from a resource that is being deleted. */
	release(key: string): void {
		const stored = this.resources.get(key);
		if (stored?.isMarked) {
			stored.isHeld = false;
			this.settle();
		}
	}

	/** A textual description of the state, for comparisons. */
	describe(): readonly string[] {
		return [...this.resources]
			.map(([key, { references, isHeld, isMarked }]) => {
				const fields = references.map(({ field, target }) => `${field}=${target}`);
				return `${key}${isMarked ? " marked" : ""}${isHeld ? " held" : ""} ${fields.join(" ")}`;
			})
			.sort();
	}

	/** The references of other resources that count. */
	*#into(key: string): Generator<readonly [string, ModelResource, OnDelete]> {
		for (const [other, resource] of this.resources) {
			const rules = resource.references.filter(({ target }) => target === key);
			const isDeletionIrrevocable = resource.isMarked && !resource.isHeld;
			if (other !== key && rules.length > 0 && !isDeletionIrrevocable) {
				yield [other, resource, strictest(rules.map(({ rule }) => rule))];
			}
		}
	}

	#isBlocked(key: string): boolean {
		return [...this.#into(key)].some(([, , rule]) => rule === OnDelete.BLOCK);
	}

	/** Applies all rules until nothing changes. */
	settle(): void {
		for (let changed = true; changed; ) {
			changed = false;
			for (const [key, resource] of this.resources) {
				if (resource.isMarked) {
					changed = this.#applyRule(key) || changed;
				}
			}
		}
	}

	/** Applies one rule for a deletion. */
	#applyRule(key: string): boolean {
		const into = [...this.#into(key)];
		for (const [other, resource, rule] of into) {
			if (rule === OnDelete.UNSET) {
				resource.references = resource.references.filter(({ target }) => target !== key);
				return true;
			}
			if (rule === OnDelete.CASCADE && !resource.isMarked && !this.#isBlocked(other)) {
				resource.isMarked = true;
				return true;
			}
		}
		if (into.length === 0 && !this.resources.get(key)?.isHeld) {
			this.resources.delete(key);
			return true;
		}
		return false;
	}
}
