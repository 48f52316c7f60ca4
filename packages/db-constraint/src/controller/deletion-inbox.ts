import { shadowName } from "../shadow.ts";
import type { Deletion } from "./subscribed-deleting-handler.ts";

/** The maximum number of waiting deletions per deployment. Excess ones are repeated by its next holder query. */
const perDeployment = 10_000;

/**
 * The received deletions that are not completed, by the name of the target's shadow. The number is limited per
 * deployment, so that a deployment with many deletions does not displace those of others.
 */
export class DeletionInbox {
	readonly #byName = new Map<string, Map<string, Deletion>>();
	readonly #counts = new Map<string, number>();

	/** Adds a deletion. Returns its name, or `undefined` if the limit of the deployment is reached. */
	add(deletion: Deletion): string | undefined {
		const name = shadowName(deletion.target);
		const deletions = this.#byName.get(name);
		if (deletions?.has(deletion.targetUid)) {
			return name;
		}
		const count = this.#counts.get(deletion.deploymentUid) ?? 0;
		if (count >= perDeployment) {
			return undefined;
		}
		this.#counts.set(deletion.deploymentUid, count + 1);
		if (deletions === undefined) {
			this.#byName.set(name, new Map([[deletion.targetUid, deletion]]));
		} else {
			deletions.set(deletion.targetUid, deletion);
		}
		return name;
	}

	/** The deletions of a name: several if the name was reused by other incarnations. */
	of(name: string): readonly Deletion[] {
		return [...(this.#byName.get(name)?.values() ?? [])];
	}

	/** Removes a completed deletion. */
	remove(deletion: Deletion): void {
		const name = shadowName(deletion.target);
		const deletions = this.#byName.get(name);
		if (deletions?.delete(deletion.targetUid)) {
			const left = (this.#counts.get(deletion.deploymentUid) ?? 1) - 1;
			if (left === 0) {
				this.#counts.delete(deletion.deploymentUid);
			} else {
				this.#counts.set(deletion.deploymentUid, left);
			}
			if (deletions.size === 0) {
				this.#byName.delete(name);
			}
		}
	}

	/** The number of waiting deletions of a deployment. */
	waiting(deploymentUid: string): number {
		return this.#counts.get(deploymentUid) ?? 0;
	}
}
