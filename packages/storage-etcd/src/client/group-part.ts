import type { RangeResponse } from "../gen/etcdserverpb/rpc_pb.ts";

/** A part is narrowed while it has more keys left than so many pages. */
const mostPages = 32;

/**
 * The part of a group of keys that is read: those that begin with the same bytes. For each page, etcd visits all the keys
 * that are left in its range, however few it returns. So if each page ranged to the end of the group, reading it would take
 * a time that grows with the square of its size.
 *
 * ```
 *   last key read        end of "artist-01"        end of "artist-0"        end of the group
 *   artist-017 │ artist-018 … artist-019 │ artist-02 … artist-09 │ artist-1 … │
 *              ├──────── narrow ─────────┤                       │            │
 *              ├───────────────────── wider ─────────────────────┤            │
 *              ├─────────────────────── the whole group ──────────────────────┤
 * ```
 *
 * It is narrowed by a byte after each page that leaves many keys, at first to what all keys so far have in common. When it
 * is read to its end, it is widened to what it was narrowed from: in the end, to the whole group. So most pages visit some
 * thousand keys, unless the names are unusual. Whatever they are, there are at most about twice as many pages as without
 * parts: it is narrowed only after a page after which more keys follow, and widened only as often as it was narrowed, however
 * many bytes that was.
 */
export class GroupPart {
	readonly #groupEnd: Uint8Array;
	readonly #begin: Uint8Array;
	/** How many bytes its keys have in common. */
	#depth = 0;
	/** How many bytes the wider parts have in common, from which it was narrowed. The widest is the whole group: it has 0. */
	readonly #wider: number[] = [];
	#end: Uint8Array;

	/** @param begin - where the group, or what is left of it, begins. */
	constructor(begin: Uint8Array, groupEnd: Uint8Array) {
		this.#begin = begin;
		this.#groupEnd = groupEnd;
		this.#end = groupEnd;
	}

	/** The first key after it. */
	get end(): Uint8Array {
		return this.#end;
	}

	/** A page was read that ends before the end. */
	onPage({ kvs, count }: Pick<RangeResponse, "kvs" | "count">): void {
		const last = kvs.at(-1)?.key;
		if (last !== undefined && count > BigInt(mostPages * kvs.length)) {
			this.#wider.push(this.#depth);
			this.#startAt(last, Math.max(this.#depth + 1, commonBytes(this.#begin, last)));
		}
	}

	/** It was read to its end. Continues there with a larger part; returns whether the group has one. */
	widen(): boolean {
		const isGroup = this.#end === this.#groupEnd;
		this.#startAt(this.#end, this.#wider.pop() ?? 0);
		return !isGroup;
	}

	/** The part that has so many bytes in common with the key. */
	#startAt(key: Uint8Array, depth: number): void {
		const end = prefixEnd(key.subarray(0, depth));
		this.#depth = Math.min(depth, key.length);
		this.#end = end && Buffer.compare(end, this.#groupEnd) < 0 ? end : this.#groupEnd;
	}
}

function commonBytes(a: Uint8Array, b: Uint8Array): number {
	const at = a.findIndex((byte, index) => byte !== b[index]);
	return at < 0 ? a.length : at;
}

/** The first key after those that begin with the prefix; `undefined` if there is none. */
function prefixEnd(prefix: Uint8Array): Uint8Array | undefined {
	const last = prefix.findLastIndex((byte) => byte < 255);
	const end = Uint8Array.from(prefix.subarray(0, last + 1));
	end[last] = (prefix[last] ?? 0) + 1;
	return last < 0 ? undefined : end;
}
