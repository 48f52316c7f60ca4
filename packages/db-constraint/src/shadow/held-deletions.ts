import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { holders } from "./shadow.ts";
import type { ShadowIndex } from "./shadow-index.ts";
import type { StoredShadow } from "./shadow-records.ts";

/** A resource of this deployment that is irrevocably being deleted. */
export interface AnnouncedDeletion {
	/** The name of its shadow. */
	readonly name: string;
	readonly target: ResourceKey;
	readonly targetUid: string;
}

/** Receives the deletions that a holder may not have released. */
export type DeletionListener = (deletion: AnnouncedDeletion) => void;

/**
 * The deletions of this deployment, by the holders that have not released the resource, so that a follower costs what
 * concerns it: neither a start nor a change visits other shadows or followers.
 */
export class HeldDeletions {
	/** By uid of the holder, then by name of the shadow. */
	readonly #byHolder = new Map<string, Map<string, AnnouncedDeletion>>();
	readonly #listeners = new Map<string, Set<DeletionListener>>();

	/** Follows the index for as long as it exists. */
	constructor(index: Pick<ShadowIndex, "onChange">) {
		index.onChange((stored, change, before) => {
			const left = before === undefined ? none : holdersOf(before);
			const held = change === "stored" ? holdersOf(stored) : none;
			for (const uid of left) {
				if (!held.has(uid)) {
					this.#remove(uid, stored.name);
				}
			}
			for (const uid of held) {
				this.#add(uid, stored);
			}
		});
	}

	/** The deletions that a holder has not released now. */
	of(holderUid: string): Iterable<AnnouncedDeletion> {
		return this.#byHolder.get(holderUid)?.values() ?? [];
	}

	/** Calls the listener with each deletion that a holder has not released whenever its shadow changes. */
	listen(holderUid: string, listener: DeletionListener): () => void {
		const listeners = this.#listeners.get(holderUid) ?? new Set();
		this.#listeners.set(holderUid, listeners.add(listener));
		return () => {
			if (listeners.delete(listener) && listeners.size === 0) {
				this.#listeners.delete(holderUid);
			}
		};
	}

	#add(uid: string, { name, shadow }: StoredShadow): void {
		if (shadow.resource === undefined) {
			return;
		}
		const deletion = { name, target: shadow.resource, targetUid: shadow.uid };
		const deletions = this.#byHolder.get(uid) ?? new Map<string, AnnouncedDeletion>();
		this.#byHolder.set(uid, deletions.set(name, deletion));
		for (const listener of this.#listeners.get(uid) ?? []) {
			listener(deletion);
		}
	}

	#remove(uid: string, name: string): void {
		const deletions = this.#byHolder.get(uid);
		if (deletions?.delete(name) && deletions.size === 0) {
			this.#byHolder.delete(uid);
		}
	}
}

const none: ReadonlySet<string> = new Set();

/** The holders of a resource that is irrevocably being deleted. CHECKING is never announced: it may be reverted. */
function holdersOf({ shadow }: StoredShadow): ReadonlySet<string> {
	return shadow.lifecycle === Lifecycle.DELETING ||
		(isPlanted("announce CHECKING") && shadow.lifecycle === Lifecycle.CHECKING)
		? new Set(holders(shadow).map(({ uid }) => uid))
		: none;
}
