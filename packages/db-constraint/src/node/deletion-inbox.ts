import { shadowName } from "../shadow.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** How many deletions of one deployment wait at most. What is too much is told again when it asks. */
const perDeployment = 10_000;

/**
 * The deletions that were seen and are not done with, by the name that the target's shadow has where
 * the target is kept, and grouped by deployment: one that deletes much fills no place but its own.
 */
export class DeletionInbox {
	readonly #byName = new Map<string, Map<string, Deletion>>();
	readonly #counts = new Map<string, number>();

	/** Keeps a deletion; answers under which name, or `undefined` where there is no room for it. */
	add(deletion: Deletion): string | undefined {
		const name = shadowName(deletion.target);
		const there = this.#byName.get(name);
		if (there?.has(deletion.targetUid)) {
			return name;
		}
		const count = this.#counts.get(deletion.deploymentUid) ?? 0;
		if (count >= perDeployment) {
			return undefined;
		}
		this.#counts.set(deletion.deploymentUid, count + 1);
		if (there === undefined) {
			this.#byName.set(name, new Map([[deletion.targetUid, deletion]]));
		} else {
			there.set(deletion.targetUid, deletion);
		}
		return name;
	}

	/** The deletions of a name: of several incarnations where it was used again. */
	of(name: string): readonly Deletion[] {
		return [...(this.#byName.get(name)?.values() ?? [])];
	}

	/** Forgets a deletion that is done with. */
	remove(deletion: Deletion): void {
		const name = shadowName(deletion.target);
		const there = this.#byName.get(name);
		if (there?.delete(deletion.targetUid)) {
			const left = (this.#counts.get(deletion.deploymentUid) ?? 1) - 1;
			if (left === 0) {
				this.#counts.delete(deletion.deploymentUid);
			} else {
				this.#counts.set(deletion.deploymentUid, left);
			}
			if (there.size === 0) {
				this.#byName.delete(name);
			}
		}
	}

	/** How many wait of a deployment. */
	waiting(deploymentUid: string): number {
		return this.#counts.get(deploymentUid) ?? 0;
	}
}
