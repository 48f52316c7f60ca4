import { isPlanted } from "../fault-points.ts";
import type { Deletion } from "../node/constraint-context.ts";
import { shadowName } from "../shadow/shadow.ts";

/** Options of `DeletionInbox`. */
export interface DeletionInboxOptions {
	/** The maximum number of deletions per deployment. */
	readonly perDeployment: number;
	/** Whether this server makes the passes over a name. */
	readonly isControlled: (name: string) => boolean;
	/** Called with each deletion that is not in the inbox any more, and its name. */
	readonly onRemoved: (deletion: Deletion, name: string) => void;
}

interface Entry {
	readonly deletion: Deletion;
	readonly name: string;
	/** When it is due again, on the monotonic clock. */
	dueMs: number;
}

/**
 * The received deletions that are not completed, by the name of the target's shadow. The number is limited per
 * deployment, so that a deployment with many deletions does not displace those of others.
 *
 * Deletions may wait for ever. At the limit, those that would be missed least make room, a share of all at once, so that
 * they are seldom looked for: first those of names that another server controls, then those that are due last. Each is
 * announced again by the next holder query of its deployment. One that was never tried stays. If none can make room, none
 * is looked for again before one was tried or removed, or this server controls other names: a busy deployment may announce
 * thousands meanwhile.
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
	readonly #options: DeletionInboxOptions;
	readonly #byName = new Map<string, Map<string, Entry>>();
	readonly #byDeployment = new Map<string, Set<Entry>>();
	/** The deployments with as many deletions as possible, none of which can make room. */
	readonly #crowded = new Set<string>();

	constructor(options: DeletionInboxOptions) {
		this.#options = options;
	}

	/**
	 * Adds a deletion, which is due at once. One that waits already keeps its time.
	 *
	 * @returns its name; `undefined` if the limit of the deployment is reached, and none can make room.
	 */
	add(deletion: Deletion): string | undefined {
		const { deploymentUid } = deletion;
		const name = shadowName(deletion.target);
		if (this.#byName.get(name)?.has(entryKey(deletion))) {
			return name;
		}
		const isFull = () => this.waiting(deploymentUid) >= this.#options.perDeployment;
		if (isFull() && !isPlanted("keep deletions that wait for ever")) {
			this.#makeRoom(deploymentUid);
		}
		if (isFull()) {
			return undefined;
		}
		const entry: Entry = { deletion, name, dueMs: Number.NEGATIVE_INFINITY };
		const entries = this.#byName.get(name) ?? new Map<string, Entry>();
		this.#byName.set(name, entries.set(entryKey(deletion), entry));
		const ofDeployment = this.#byDeployment.get(deploymentUid) ?? new Set<Entry>();
		this.#byDeployment.set(deploymentUid, ofDeployment.add(entry));
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

	/** Lets a deletion wait until then, on the monotonic clock. Returns whether it is in the inbox. */
	delay(deletion: Deletion, dueMs: number): boolean {
		const entry = this.#entry(deletion);
		if (entry !== undefined) {
			entry.dueMs = dueMs;
			this.#crowded.delete(deletion.deploymentUid);
		}
		return entry !== undefined;
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
		const entry = this.#entry(deletion);
		if (entry === undefined) {
			return;
		}
		const { name } = entry;
		drop(this.#byName, name, entryKey(deletion));
		drop(this.#byDeployment, deletion.deploymentUid, entry);
		this.#crowded.delete(deletion.deploymentUid);
		this.#options.onRemoved(deletion, name);
	}

	/** This server may control other names than before. */
	controlChanged(): void {
		this.#crowded.clear();
	}

	/** The number of waiting deletions of a deployment. */
	waiting(deploymentUid: string): number {
		return this.#byDeployment.get(deploymentUid)?.size ?? 0;
	}

	#makeRoom(deploymentUid: string): void {
		if (this.#crowded.has(deploymentUid)) {
			return;
		}
		const { perDeployment, isControlled } = this.#options;
		const entries = [...(this.#byDeployment.get(deploymentUid) ?? [])];
		const displaceable = entries
			.map((entry) => ({
				deletion: entry.deletion,
				dueMs: isControlled(entry.name) ? entry.dueMs : Number.POSITIVE_INFINITY,
			}))
			.filter(({ dueMs }) => dueMs !== Number.NEGATIVE_INFINITY)
			.sort((a, b) => (a.dueMs === b.dueMs ? 0 : b.dueMs - a.dueMs));
		for (const { deletion } of displaceable.slice(0, Math.ceil(perDeployment * displacedShare))) {
			this.remove(deletion);
		}
		if (displaceable.length === 0) {
			this.#crowded.add(deploymentUid);
		}
	}

	#entry(deletion: Deletion): Entry | undefined {
		return this.#byName.get(shadowName(deletion.target))?.get(entryKey(deletion));
	}
}

function entryKey({ deploymentUid, targetUid }: Deletion): string {
	return `${deploymentUid} ${targetUid}`;
}

/** Removes an item of a group, and the group with its last item. */
function drop<Key, Item>(
	groups: Map<Key, { delete(item: Item): boolean; readonly size: number }>,
	key: Key,
	item: Item,
): void {
	const group = groups.get(key);
	group?.delete(item);
	if (group?.size === 0) {
		groups.delete(key);
	}
}

/** The share of the deletions of a deployment that make room together. */
const displacedShare = 0.1;
