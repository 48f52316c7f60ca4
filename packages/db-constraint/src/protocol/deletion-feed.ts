import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { holders } from "../shadow/shadow.ts";
import type { ShadowIndex } from "../shadow/shadow-index.ts";

/** A resource of this deployment that is irrevocably being deleted. */
export interface AnnouncedDeletion {
	readonly target: ResourceKey;
	readonly targetUid: string;
}

/** An event of a feed. */
export type DeletionEvent =
	| ({ readonly kind: "deletion" } & AnnouncedDeletion)
	| { readonly kind: "end-of-snapshot" };

/**
 * The resources of this deployment that are irrevocably being deleted and that the follower holds: first all
 * current ones, then further ones, until the signal aborts. Repeated events of a resource are merged while
 * they wait to be read. CHECKING is never announced: it may be reverted.
 */
export async function* deletionFeed(
	index: ShadowIndex,
	followerUid: string,
	signal: AbortSignal,
): AsyncGenerator<DeletionEvent, void, undefined> {
	const waiting = new Map<string, AnnouncedDeletion>();
	let wake = Promise.withResolvers<void>();
	const offer = (name: string, shadow: Shadow) => {
		const isHeldByFollower = holders(shadow).some(({ uid }) => uid === followerUid);
		if (shadow.lifecycle === Lifecycle.DELETING && shadow.resource && isHeldByFollower) {
			waiting.set(name, { target: shadow.resource, targetUid: shadow.uid });
			wake.resolve();
		}
	};
	const stop = () => wake.resolve();
	const stopListening = index.onChange(({ name, shadow }, change) => {
		if (change === "stored") {
			offer(name, shadow);
		} else {
			waiting.delete(name);
		}
	});
	signal.addEventListener("abort", stop, { once: true });
	try {
		for (const { name, shadow } of index.all()) {
			offer(name, shadow);
		}
		let isSnapshot = true;
		while (!signal.aborted) {
			for (const [name, deletion] of waiting) {
				waiting.delete(name);
				yield { kind: "deletion", ...deletion };
			}
			if (isSnapshot) {
				isSnapshot = false;
				yield { kind: "end-of-snapshot" };
			}
			if (waiting.size === 0 && !signal.aborted) {
				wake = Promise.withResolvers();
				await wake.promise;
			}
		}
	} finally {
		stopListening();
		signal.removeEventListener("abort", stop);
	}
}
