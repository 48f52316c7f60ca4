import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { newUlid, type ResourceName } from "@plinth/resource";
import type { Runtime, Timer } from "@plinth/runtime";
import type { Snapshot } from "@plinth/storage";
import { malformed } from "../errors/refusal.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import { decodePosition, encodePosition } from "./page-position.ts";

/** A list that a caller reads in pages. */
export interface PagedList {
	/** The snapshot from which all pages are read. */
	readonly snapshot: Snapshot;
	/** Identifies the query and the caller. A token is only valid for these. */
	readonly queryKey: string;
	/** The subject whose share it counts towards; absent for the server itself. */
	readonly subject: string | undefined;
	/** The prefix of its tokens, once one has been issued. */
	key?: string;
}

/** The beginning of a page: after the resource with this name. */
type Position = Pick<ResourceName, "tenancy" | "name" | "region">;

interface HeldList {
	readonly list: PagedList;
	readonly timer: Timer;
}

/** When the limit is reached, subjects with more lists than this lose one first. */
const share = resourceServiceLimits.pagedLists / 4;

/**
 * The lists that are being read in pages. Each retains its snapshot until its newest token expires. When the
 * number of lists exceeds the limit, a subject that has more than a quarter of them loses its least recently
 * used list; if there is no such subject, the least recently used list of all is dropped. Independently, the
 * storage ends snapshots that retain too much memory.
 */
export class PagedLists {
	readonly #runtime: Runtime;
	/** Least recently used first. */
	readonly #held = new Map<string, HeldList>();
	/** The keys of the tokens of each subject, least recently used first. */
	readonly #ofSubject = new Map<string, Set<string>>();
	/** The subjects above their share: at most three. */
	readonly #overShare = new Set<string>();

	constructor(runtime: Runtime) {
		this.#runtime = runtime;
	}

	/** Issues a token for the resources after `last`, for a new list or for the list of `token`. */
	tokenAfter(list: PagedList, last: Resource, token: string): string {
		const key = token === "" ? newUlid(this.#runtime) : keyOf(token);
		this.#take(key);
		const timer = this.#runtime.clock.setTimer(resourceServiceLimits.pageTokenMs, () =>
			this.#drop(key),
		);
		this.#held.set(key, { list, timer });
		list.key = key;
		this.#count(key, list.subject);
		if (this.#held.size > resourceServiceLimits.pagedLists) {
			this.#makeRoom();
		}
		const { tenancy, name = "", region } = last.id ?? {};
		const position = [tenancy?.partition ?? "", tenancy?.namespace ?? "", name];
		if (region !== undefined) {
			position.push(region);
		}
		return `${key}.${encodePosition(position)}`;
	}

	/**
	 * The list of a token, and where its next page begins.
	 *
	 * @throws ConnectError InvalidArgument if the token is malformed or belongs to another list, OutOfRange if
	 *   it has expired.
	 */
	resume(token: string, queryKey: string): { list: PagedList; after: Position } {
		const after = positionOf(token);
		const held = this.#held.get(keyOf(token));
		if (held === undefined || held.list.snapshot.ended) {
			throw new ConnectError("page_token has expired: list again from the start", Code.OutOfRange);
		}
		if (held.list.queryKey !== queryKey) {
			throw malformed("page_token", "belongs to another list");
		}
		return { list: held.list, after };
	}

	/** Drops a list whose snapshot the storage has ended. */
	forget(list: PagedList): void {
		if (list.key !== undefined) {
			this.#drop(list.key);
		}
	}

	#makeRoom(): void {
		let largest: ReadonlySet<string> | undefined;
		for (const subject of this.#overShare) {
			const keys = this.#ofSubject.get(subject);
			if (keys !== undefined && keys.size > (largest?.size ?? 0)) {
				largest = keys;
			}
		}
		const [oldest] = largest ?? this.#held.keys();
		if (oldest !== undefined) {
			this.#drop(oldest);
		}
	}

	#drop(key: string): void {
		this.#take(key)?.list.snapshot.release();
	}

	#take(key: string): HeldList | undefined {
		const held = this.#held.get(key);
		if (held !== undefined) {
			this.#held.delete(key);
			held.timer.cancel();
			this.#uncount(key, held.list.subject);
		}
		return held;
	}

	#count(key: string, subject: string | undefined): void {
		if (subject === undefined) {
			return;
		}
		const keys = this.#ofSubject.get(subject);
		if (keys === undefined) {
			this.#ofSubject.set(subject, new Set([key]));
			return;
		}
		keys.add(key);
		if (keys.size > share) {
			this.#overShare.add(subject);
		}
	}

	#uncount(key: string, subject: string | undefined): void {
		const keys = subject === undefined ? undefined : this.#ofSubject.get(subject);
		if (subject === undefined || keys === undefined) {
			return;
		}
		keys.delete(key);
		if (keys.size === 0) {
			this.#ofSubject.delete(subject);
		}
		if (keys.size <= share) {
			this.#overShare.delete(subject);
		}
	}
}

function keyOf(token: string): string {
	return token.slice(0, token.indexOf("."));
}

function positionOf(token: string): Position {
	const separator = token.indexOf(".");
	const encoded = separator < 0 ? "" : token.slice(separator + 1);
	const [partition = "", namespace = "", name = "", region] = decodePosition(encoded, 3, 4);
	return { tenancy: { partition, namespace }, name, region };
}
