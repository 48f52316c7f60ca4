import type { ID, Resource } from "@plinth/proto";
import { familyKey, nameKey } from "@plinth/resource";
import { orderKey } from "./resource-key.ts";

/**
 * Finds resources by the incarnation that owns them: the name and uid of the owner.
 */
export class OwnerIndex {
	readonly #owned = new Map<string, Map<string, Resource>>();

	/** Updates the index for a change of the resource stored under one name. */
	update(previous: Resource | undefined, resource: Resource | undefined): void {
		const before = ownerKey(previous?.owner);
		const after = ownerKey(resource?.owner);
		if (before !== undefined && before !== after && previous?.id !== undefined) {
			const owned = this.#owned.get(before);
			owned?.delete(ownedKey(previous.id));
			if (owned?.size === 0) {
				this.#owned.delete(before);
			}
		}
		if (after !== undefined && resource?.id !== undefined) {
			let owned = this.#owned.get(after);
			if (owned === undefined) {
				owned = new Map();
				this.#owned.set(after, owned);
			}
			owned.set(ownedKey(resource.id), resource);
		}
	}

	/** The resources that the incarnation owns, ordered by family, partition, namespace and name. */
	list(owner: ID): readonly Resource[] {
		const owned = this.#owned.get(ownerKey(owner) ?? "");
		if (owned === undefined) {
			return [];
		}
		return [...owned].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, resource]) => resource);
	}
}

/** `undefined` if the owner has no uid: ownership is by incarnation, not by name. */
function ownerKey(owner: ID | undefined): string | undefined {
	return owner === undefined || owner.uid === "" ? undefined : `${nameKey(owner)}/${owner.uid}`;
}

function ownedKey(id: ID): string {
	return `${id.type === undefined ? "" : familyKey(id.type)}\0${orderKey(id)}`;
}
