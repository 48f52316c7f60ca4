import { Code, ConnectError } from "@connectrpc/connect";
import type { KnownType, Place } from "@plinth/documents";
import type { Resource, WatchEvent } from "@plinth/proto";
import { nameKey, tenancyOf, typeOf } from "@plinth/resource";
import { Backoff, type Clock } from "@plinth/runtime";
import type { Connection } from "./connection.ts";
import { isNetworkFailure } from "./network-failure.ts";

/** What a follower receives. */
export type Change =
	/** `present` resources existed at the start; the others are changes since. */
	| { readonly kind: "present" | "added" | "changed" | "deleted"; readonly resource: Resource }
	/** All present resources have been yielded. Occurs once. */
	| { readonly kind: "complete" };

/** What to follow, and how. */
export interface FollowOptions {
	readonly resources: Connection["resources"];
	readonly type: KnownType;
	readonly tenancy: Place;
	readonly namePrefix: string;
	/** As in a list. */
	readonly region?: string | undefined;
	readonly clock: Clock;
	readonly signal: AbortSignal;
	/** Called with the reason when the watch breaks and will be reopened. */
	readonly onLost: (reason: ConnectError) => void;
	/** Called when the watch has been reopened. */
	readonly onResumed: () => void;
}

const reconnect = { baseMs: 500, maxMs: 10_000 };

/**
 * Yields the present resources, then every change, across broken connections and restarts of the server. The
 * watch resumes after the last version. If the server can no longer resume there, a new snapshot is compared
 * with the resources yielded so far, so that nothing is yielded twice and no deletion is missed.
 *
 * @throws ConnectError if the watch can't be opened at all, or the server refuses it.
 */
export async function* follow(options: FollowOptions): AsyncGenerator<Change, void> {
	const { clock, signal } = options;
	const known = new KnownState();
	const backoff = new Backoff({ ...reconnect, clock });
	let isLost = false;
	let hasOpened = false;
	for (;;) {
		try {
			for await (const event of open(options, known.begin())) {
				hasOpened = true;
				backoff.reset();
				if (isLost) {
					isLost = false;
					options.onResumed();
				}
				yield* known.apply(event);
			}
			throw new ConnectError("the server ended the watch", Code.Unavailable);
		} catch (failure) {
			const error = ConnectError.from(failure);
			if (signal.aborted || !hasOpened || !isTransient(error)) {
				throw error;
			}
			if (isOutdated(error)) {
				known.restart();
			}
			if (!isLost) {
				isLost = true;
				options.onLost(error);
			}
			await backoff.wait(signal);
		}
	}
}

function open(
	{ resources, type, tenancy, namePrefix, region, signal }: FollowOptions,
	afterVersion: string,
) {
	return resources.watchList(
		{
			type: typeOf(type.type),
			tenancy: tenancyOf(tenancy),
			namePrefix,
			afterVersion,
			bookmarks: true,
			...(region !== undefined && { region }),
		},
		// A watch does not end by itself, so it has no timeout.
		{ signal, timeoutMs: 0 },
	);
}

/** Whether a retry may succeed. */
function isTransient({ code }: ConnectError): boolean {
	return [
		...[Code.Unavailable, Code.Aborted, Code.OutOfRange, Code.ResourceExhausted],
		...[Code.DeadlineExceeded, Code.Internal, Code.Unknown, Code.Canceled],
	].includes(code);
}

/** Whether the server itself reported that the watch can't resume at its version. */
function isOutdated(error: ConnectError): boolean {
	const { code } = error;
	return !isNetworkFailure(error) && (code === Code.Aborted || code === Code.OutOfRange);
}

/** The resources that a follower has received so far. */
class KnownState {
	readonly #known = new Map<string, Resource>();
	/** The keys received in the current snapshot; `undefined` outside of one. */
	#snapshot: Set<string> | undefined;
	#isComplete = false;
	#afterVersion = "";

	/** Starts a watch, and returns the version after which it resumes; empty for a snapshot. */
	begin(): string {
		this.#snapshot = this.#afterVersion === "" ? new Set() : undefined;
		return this.#afterVersion;
	}

	restart(): void {
		this.#afterVersion = "";
	}

	*apply({ event, version }: WatchEvent): Generator<Change> {
		switch (event.case) {
			case "upsert":
				yield* this.#upsert(event.value.resource);
				break;
			case "delete":
				yield* this.#delete(event.value.resource);
				break;
			case "endOfSnapshot":
				yield* this.#endSnapshot();
				break;
			default:
		}
		if (version !== "") {
			this.#afterVersion = version;
		}
	}

	*#upsert(resource: Resource | undefined): Generator<Change> {
		if (resource?.id === undefined) {
			return;
		}
		const key = nameKey(resource.id);
		const before = this.#known.get(key);
		this.#known.set(key, resource);
		this.#snapshot?.add(key);
		if (before?.version !== resource.version) {
			const kind = !this.#isComplete ? "present" : before === undefined ? "added" : "changed";
			yield { kind, resource };
		}
	}

	*#delete(resource: Resource | undefined): Generator<Change> {
		if (resource?.id !== undefined && this.#known.delete(nameKey(resource.id))) {
			yield { kind: "deleted", resource };
		}
	}

	*#endSnapshot(): Generator<Change> {
		for (const [key, resource] of this.#known) {
			if (this.#snapshot !== undefined && !this.#snapshot.has(key)) {
				this.#known.delete(key);
				yield { kind: "deleted", resource };
			}
		}
		this.#snapshot = undefined;
		if (!this.#isComplete) {
			this.#isComplete = true;
			yield { kind: "complete" };
		}
	}
}
