import type { AnnouncedDeletion, HeldDeletions } from "../shadow/held-deletions.ts";

/** An event of a feed. */
export type DeletionEvent =
	| ({ readonly kind: "deletion" } & AnnouncedDeletion)
	| { readonly kind: "end-of-snapshot" };

/**
 * The resources of this deployment that are irrevocably being deleted and that the follower holds: first all current
 * ones, then further ones, until the signal aborts. Repeated events of a resource are merged while they wait to be read.
 */
export async function* deletionFeed(
	deletions: HeldDeletions,
	followerUid: string,
	signal: AbortSignal,
): AsyncGenerator<DeletionEvent, void, undefined> {
	const waiting = new Map<string, AnnouncedDeletion>();
	let wake = Promise.withResolvers<void>();
	const offer = (deletion: AnnouncedDeletion) => {
		waiting.set(deletion.name, deletion);
		wake.resolve();
	};
	const stop = () => wake.resolve();
	const stopListening = deletions.listen(followerUid, offer);
	signal.addEventListener("abort", stop, { once: true });
	try {
		for (const deletion of deletions.of(followerUid)) {
			offer(deletion);
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
