import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource, WatchEvent } from "@plinth/proto";
import { nameKey, tenancyOf, typeOf } from "@plinth/resource";
import { Backoff, type Clock } from "@plinth/runtime";
import type { Connection } from "./connection.ts";
import type { KnownType, Place } from "./known-types.ts";
import { isNetworkFailure } from "./network-failure.ts";

/** What a follower is told. */
export type Change =
	/** `present` is from before, `added`, `changed` and `deleted` have just happened. */
	| { readonly kind: "present" | "added" | "changed" | "deleted"; readonly resource: Resource }
	/** All that was there has been told. Once. */
	| { readonly kind: "complete" };

/** What is followed, and how. */
export interface FollowOptions {
	readonly resources: Connection["resources"];
	readonly type: KnownType;
	readonly tenancy: Place;
	readonly namePrefix: string;
	readonly clock: Clock;
	readonly signal: AbortSignal;
	/** Learns why the watch broke; it is opened again. */
	readonly onLost: (reason: ConnectError) => void;
	/** Learns that it is open again. */
	readonly onResumed: () => void;
}

const reconnect = { baseMs: 500, maxMs: 10_000 };

/**
 * What there is, and then every change, across broken connections and restarts of the server: the
 * watch resumes where it was, or where the server no longer knows that, it compares what there is then
 * with what was told, so that nothing is told twice and no deletion is missed.
 *
 * @throws ConnectError where the watch can't be opened at all, or the server refuses it.
 */
export async function* follow(options: FollowOptions): AsyncGenerator<Change, void> {
	const { clock, signal } = options;
	const told = new Told();
	const backoff = new Backoff({ ...reconnect, clock });
	let isLost = false;
	let hasOpened = false;
	for (;;) {
		try {
			for await (const event of open(options, told.begin())) {
				hasOpened = true;
				backoff.reset();
				if (isLost) {
					isLost = false;
					options.onResumed();
				}
				yield* told.tell(event);
			}
			throw new ConnectError("the server ended the watch", Code.Unavailable);
		} catch (failure) {
			const error = ConnectError.from(failure);
			if (signal.aborted || !hasOpened || !isPassing(error)) {
				throw error;
			}
			if (isOutdated(error)) {
				told.startAnew();
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
	{ resources, type, tenancy, namePrefix, signal }: FollowOptions,
	afterVersion: string,
) {
	return resources.watchList(
		{
			type: typeOf(type.type),
			tenancy: tenancyOf(tenancy),
			namePrefix,
			afterVersion,
			bookmarks: true,
		},
		// A watch has no end: the time that a call may take is not for it.
		{ signal, timeoutMs: 0 },
	);
}

/** Whether trying again may help. */
function isPassing({ code }: ConnectError): boolean {
	return [
		...[Code.Unavailable, Code.Aborted, Code.OutOfRange, Code.ResourceExhausted],
		...[Code.DeadlineExceeded, Code.Internal, Code.Unknown, Code.Canceled],
	].includes(code);
}

/** Whether the server itself said that the watch can't resume where it was. */
function isOutdated(error: ConnectError): boolean {
	const { code } = error;
	return !isNetworkFailure(error) && (code === Code.Aborted || code === Code.OutOfRange);
}

/** What a follower has been told so far. As large as what is followed. */
class Told {
	readonly #known = new Map<string, Resource>();
	/** What the snapshot that is under way has held; `undefined` where none is. */
	#snapshot: Set<string> | undefined;
	#isComplete = false;
	#afterVersion = "";

	/** Where the watch that is opened now is to begin; empty is with a snapshot. */
	begin(): string {
		this.#snapshot = this.#afterVersion === "" ? new Set() : undefined;
		return this.#afterVersion;
	}

	startAnew(): void {
		this.#afterVersion = "";
	}

	*tell({ event, version }: WatchEvent): Generator<Change> {
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
