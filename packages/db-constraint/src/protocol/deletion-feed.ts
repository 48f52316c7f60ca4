import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { announcedAddresses } from "../shadow/endpoint-addresses.ts";
import type { AnnouncedDeletion } from "../shadow/held-deletions.ts";

/** An event of a feed. */
export type DeletionEvent =
	| ({ readonly kind: "deletion" } & AnnouncedDeletion)
	| { readonly kind: "end-of-snapshot" }
	/** Other servers of this deployment run than before. */
	| { readonly kind: "servers" };

/** What a feed reads. */
export type FeedContext = Pick<ConstraintContext, "deletions"> & {
	readonly index: Pick<ConstraintContext["index"], "endpoints" | "onEndpoints">;
};

/**
 * The resources of this deployment that are irrevocably being deleted and that the follower holds: first all current
 * ones, then further ones, until the signal aborts. Repeated events of a resource are merged while they wait to be read.
 * In between, changes of the servers since this call, of which the last one counts: renewals of their leases change none.
 */
export function deletionFeed(
	context: FeedContext,
	followerUid: string,
	signal: AbortSignal,
): AsyncGenerator<DeletionEvent, void, undefined> {
	return feed(context, followerUid, serversOf(context), signal);
}

async function* feed(
	context: FeedContext,
	followerUid: string,
	serversBefore: string,
	signal: AbortSignal,
): AsyncGenerator<DeletionEvent, void, undefined> {
	const { deletions, index } = context;
	const waiting = new Map<string, AnnouncedDeletion>();
	let wake = Promise.withResolvers<void>();
	let servers = serversBefore;
	const hasOtherServers = () =>
		serversOf(context) !== servers && !isPlanted("do not tell followers which servers run");
	const offer = (deletion: AnnouncedDeletion) => {
		waiting.set(deletion.name, deletion);
		wake.resolve();
	};
	const awaken = () => wake.resolve();
	const stops = [deletions.listen(followerUid, offer), index.onEndpoints(awaken)];
	signal.addEventListener("abort", awaken, { once: true });
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
			if (hasOtherServers()) {
				servers = serversOf(context);
				yield { kind: "servers" };
			} else if (waiting.size === 0 && !signal.aborted) {
				wake = Promise.withResolvers();
				await wake.promise;
			}
		}
	} finally {
		for (const stop of stops) {
			stop();
		}
		signal.removeEventListener("abort", awaken);
	}
}

function serversOf({ index }: FeedContext): string {
	return announcedAddresses(index.endpoints).toSorted().join();
}
