import type { Deletion } from "../node/constraint-context.ts";
import { shadowName } from "../shadow/shadow.ts";

/** The maximum number of waiting deletions per deployment. Excess ones are repeated by its next holder query. */
const perDeployment = 10_000;

interface Entry {
	readonly deletion: Deletion;
	/** When it is due again, on the monotonic clock. */
	dueMs: number;
}

/**
 * The received deletions that are not completed, by the name of the target's shadow. The number is limited per
 * deployment, so that a deployment with many deletions does not displace those of others.
 *
 * Targets of the same name in several regions share a name here, also with the shadow of a resource of this deployment.
 * An attempt at a deletion may change that shadow, and each change triggers another pass over the name. A deletion that
 * waits is therefore not due before its time, whatever else happens to the name: otherwise passes would repeat without a
 * pause.
 *
 * A deployment and its successor may announce the deletion of one incarnation, of which only one counts: each has its
 * own entry.
 */
export class DeletionInbox {
	readonly #byName = new Map<string, Map<string, Entry>>();
	readonly #counts = new Map<string, number>();

	/**
	 * Adds a deletion, which is due at once. One that waits already keeps its time.
	 *
	 * @returns its name; `undefined` if the limit of the deployment is reached.
	 */
	add(deletion: Deletion): string | undefined {
		const name = shadowName(deletion.target);
		const entries = this.#byName.get(name);
		if (entries?.has(entryKey(deletion))) {
			return name;
		}
		const count = this.#counts.get(deletion.deploymentUid) ?? 0;
		if (count >= perDeployment) {
			return undefined;
		}
		this.#counts.set(deletion.deploymentUid, count + 1);
		const entry: Entry = { deletion, dueMs: Number.NEGATIVE_INFINITY };
		if (entries === undefined) {
			this.#byName.set(name, new Map([[entryKey(deletion), entry]]));
		} else {
			entries.set(entryKey(deletion), entry);
		}
		return name;
	}

	/** The deletions of a name: several if the name was reused by other incarnations, or is used in other regions. */
	of(name: string): readonly Deletion[] {
		return [...(this.#byName.get(name)?.values() ?? [])].map(({ deletion }) => deletion);
	}

	/** All deletions, in no order. */
	all(): readonly Deletion[] {
		return [...this.#byName.values()].flatMap((entries) =>
			[...entries.values()].map(({ deletion }) => deletion),
		);
	}

	/** When a deletion is due; at once if it never waited. */
	dueMs(deletion: Deletion): number {
		return this.#entry(deletion)?.dueMs ?? Number.NEGATIVE_INFINITY;
	}

	/** Lets a deletion wait until then, on the monotonic clock. */
	delay(deletion: Deletion, dueMs: number): void {
		const entry = this.#entry(deletion);
		if (entry !== undefined) {
			entry.dueMs = dueMs;
		}
	}

	/** Whether deletions of that name wait. */
	has(name: string): boolean {
		return this.#byName.has(name);
	}

	/** Lets the deletions of a name wait no longer than until then. */
	hasten(name: string, dueMs: number): void {
		for (const entry of this.#byName.get(name)?.values() ?? []) {
			entry.dueMs = Math.min(entry.dueMs, dueMs);
		}
	}

	/** Removes a completed deletion. */
	remove(deletion: Deletion): void {
		const name = shadowName(deletion.target);
		const entries = this.#byName.get(name);
		if (entries?.delete(entryKey(deletion))) {
			const left = (this.#counts.get(deletion.deploymentUid) ?? 1) - 1;
			if (left === 0) {
				this.#counts.delete(deletion.deploymentUid);
			} else {
				this.#counts.set(deletion.deploymentUid, left);
			}
			if (entries.size === 0) {
				this.#byName.delete(name);
			}
		}
	}

	/** The number of waiting deletions of a deployment. */
	waiting(deploymentUid: string): number {
		return this.#counts.get(deploymentUid) ?? 0;
	}

	#entry(deletion: Deletion): Entry | undefined {
		return this.#byName.get(shadowName(deletion.target))?.get(entryKey(deletion));
	}
}

function entryKey({ deploymentUid, targetUid }: Deletion): string {
	return `${deploymentUid} ${targetUid}`;
}
