import type { ID, Resource } from "@plinth/proto";
import { decode, displayName, gvkKey, isMarkedForDeletion, Tombstone } from "@plinth/resource";
import type { Origin, Revision } from "./follower.fixture.ts";

/**
 * Checks after every commit, against the complete stored state: resources are only created for owners that exist,
 * and a tombstone is removed only when the deleted resource owns nothing that is not marked.
 */
export class OwnerCheck {
	readonly violations: string[] = [];
	/** The number of tombstones of owners that were removed. */
	removed = 0;
	readonly #origin: Origin;
	readonly #owners = new Set<string>();

	constructor(origin: Origin) {
		this.#origin = origin;
		origin.onRevision((revision) => this.#check(revision));
	}

	/** The resources that are not marked, and whose owner does not exist. */
	orphans(): readonly string[] {
		const uids = new Set([...this.#origin.stored.values()].map(({ id }) => id?.uid));
		return [...this.#origin.stored.values()].flatMap((resource) =>
			resource.owner !== undefined &&
			!isMarkedForDeletion(resource) &&
			!uids.has(resource.owner.uid)
				? [`${nameOf(resource)} is left, and its owner does not exist`]
				: [],
		);
	}

	#check({ version, changes, replaced }: Revision): void {
		for (const [at, { op, resource }] of changes.entries()) {
			const { owner } = resource;
			if (op === "put" && replaced[at] === undefined && owner !== undefined) {
				this.#owners.add(owner.uid);
				if (![...this.#origin.stored.values()].some(({ id }) => id?.uid === owner.uid)) {
					this.violations.push(`${version}: ${nameOf(resource)} is created for a deleted owner`);
				}
			} else if (
				op === "delete" &&
				resource.id?.type &&
				gvkKey(resource.id.type) === Tombstone.key
			) {
				this.#checkRemoved(decode(Tombstone, resource).data.owner, version);
			}
		}
	}

	#checkRemoved(owner: ID | undefined, version: number): void {
		if (owner === undefined || !this.#owners.has(owner.uid)) {
			return;
		}
		this.removed += 1;
		for (const resource of this.#origin.stored.values()) {
			if (resource.owner?.uid === owner.uid && !isMarkedForDeletion(resource)) {
				const name = displayName(owner);
				this.violations.push(
					`${version}: the tombstone of ${name} is removed before ${nameOf(resource)}`,
				);
			}
		}
	}
}

function nameOf({ id }: Resource): string {
	return id === undefined ? "" : displayName(id);
}
