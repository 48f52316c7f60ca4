import { ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { nameKey, tenancyOf, typeOf } from "@plinth/resource";
import type { Watch, WatchUpdate } from "@plinth/watch-client";
import type { LiveChange, LiveQuery } from "../live-list.ts";
import type { LiveState } from "../live-state.ts";
import type { ServerLink } from "./server-link.ts";

/** Receives a followed list. */
export interface ListObserver {
	readonly onChanges: (changes: readonly LiveChange[]) => void;
	/** The state may have changed. */
	readonly onState: () => void;
}

/**
 * A list of resources that is followed, and may be paused. When it can't resume, its next snapshot is compared with what was
 * passed on before: nothing is repeated, and no deletion is missed.
 */
export class FollowedList {
	readonly #link: ServerLink;
	readonly #queryOf: () => LiveQuery;
	readonly #observer: ListObserver;
	/** The uid and version of each resource that was passed on, by its key. */
	readonly #known = new Map<string, string>();
	/** The keys in the current snapshot; `undefined` outside of one. */
	#snapshot: Set<string> | undefined;
	#watch: Watch | undefined;
	#version = "";
	#isComplete = false;
	/** When the list was last known to be current. The link may have received messages of other lists since then. */
	#currentMs: number | undefined;
	#pausedMs: number | undefined;
	#refusal: string | undefined;
	/** Set after the server has ended the watch, until it has sent something again, also if it is paused meanwhile. */
	#lost: Extract<LiveState, { readonly phase: "lost" }> | undefined;

	/** @param queryOf - called at each start. Its result must not change after the first one. */
	constructor(link: ServerLink, queryOf: () => LiveQuery, observer: ListObserver) {
		this.#link = link;
		this.#queryOf = queryOf;
		this.#observer = observer;
	}

	get state(): LiveState {
		if (this.#refusal !== undefined) {
			return { phase: "refused", reason: this.#refusal };
		}
		if (this.#pausedMs !== undefined) {
			return { phase: "paused", sinceMs: this.#pausedMs };
		}
		// It was lost before the connection, which may come back without it.
		if (this.#lost !== undefined) {
			return this.#lost;
		}
		const { connection } = this.#link;
		if (connection.phase === "lost") {
			return connection;
		}
		if (this.#isComplete && this.#snapshot === undefined) {
			return connection.phase === "connected" ? { phase: "live" } : { phase: "connecting" };
		}
		return { phase: this.#snapshot?.size ? "loading" : "connecting" };
	}

	/** Follows the list, from where it was paused. */
	start(): void {
		if (this.#watch !== undefined || this.#refusal !== undefined) {
			return;
		}
		this.#pausedMs = undefined;
		const { type, tenancy, namePrefix } = this.#queryOf();
		const query = { type: typeOf(type), tenancy: tenancyOf(tenancy), namePrefix };
		try {
			this.#watch = this.#link.watch({ ...query, afterVersion: this.#version }, (update) =>
				this.#receive(update),
			);
		} catch (error) {
			this.#refusal = ConnectError.from(error).rawMessage;
		}
		this.#observer.onState();
	}

	/** Leaves the stream of the server until the next start. */
	pause(): void {
		if (this.#watch !== undefined) {
			this.#version = this.#watch.version;
			this.#watch.close();
			this.#watch = undefined;
			this.#snapshot = undefined;
		}
		this.#pausedMs ??= this.#lost?.sinceMs ?? this.#link.heardMs;
		this.#observer.onState();
	}

	#receive(update: WatchUpdate): void {
		const before = this.#lost;
		if (update.kind !== "snapshot-begins") {
			this.#lost = undefined;
		}
		if (isCurrentAfter(update)) {
			this.#currentMs = this.#link.heardMs;
		}
		switch (update.kind) {
			case "snapshot-begins":
				// It is requested: the server has sent nothing yet.
				this.#snapshot = new Set();
				break;
			case "present":
				this.#pass(this.#upserted(update.resource));
				if (this.#snapshot?.size !== 1) {
					return;
				}
				break;
			case "snapshot-complete":
				this.#pass(this.#gone());
				break;
			case "changes":
				this.#pass(update.changes.flatMap(({ kind, resource }) => this.#change(kind, resource)));
				if (before === undefined) {
					return;
				}
				break;
			case "ended":
				this.#watch = undefined;
				this.#refusal = update.error.rawMessage;
				this.#link.refused(update.error);
				break;
			case "lost":
				// What follows is a snapshot from its beginning, or what has changed since.
				this.#snapshot = undefined;
				this.#lost = {
					phase: "lost",
					// An attempt that fails as well makes nothing newer.
					sinceMs: before?.sinceMs ?? this.#currentMs ?? this.#link.heardMs,
					reason: update.error.rawMessage,
				};
				break;
			case "current":
				if (before === undefined) {
					return;
				}
		}
		this.#observer.onState();
	}

	#pass(changes: readonly LiveChange[]): void {
		if (changes.length > 0) {
			this.#observer.onChanges(changes);
		}
	}

	#change(kind: "upsert" | "delete", resource: Resource): readonly LiveChange[] {
		if (kind === "upsert") {
			return this.#upserted(resource);
		}
		const key = resource.id && nameKey(resource.id);
		return key !== undefined && this.#known.delete(key) ? [{ kind: "deleted", key }] : [];
	}

	#upserted(resource: Resource): readonly LiveChange[] {
		if (resource.id === undefined) {
			return [];
		}
		const key = nameKey(resource.id);
		const before = this.#known.get(key);
		const now = `${resource.id.uid} ${resource.version}`;
		this.#snapshot?.add(key);
		if (before === now) {
			return [];
		}
		this.#known.set(key, now);
		const kind = !this.#isComplete ? "present" : before === undefined ? "added" : "changed";
		return [{ kind, key, resource }];
	}

	/** The end of a snapshot: what is not in it has been deleted. */
	#gone(): readonly LiveChange[] {
		const snapshot = this.#snapshot;
		this.#snapshot = undefined;
		this.#isComplete = true;
		const gone = snapshot ? [...this.#known.keys()].filter((key) => !snapshot.has(key)) : [];
		for (const key of gone) {
			this.#known.delete(key);
		}
		return gone.map((key) => ({ kind: "deleted", key }));
	}
}

/** Whether all changes up to a version have arrived with the update. */
function isCurrentAfter({ kind }: WatchUpdate): boolean {
	return kind === "snapshot-complete" || kind === "changes" || kind === "current";
}
