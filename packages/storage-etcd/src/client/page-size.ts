import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";

/** The approximate size of a page, in bytes, and the least that it is reduced to. */
const pageBytes = { most: 2 * 1024 * 1024, least: 128 * 1024 };
const pageKeys = { first: 2, mostOfAll: 128, mostOfGroup: 512 };
/** By how much a page that could not be read is reduced. */
const reduction = 4;
/** By how much later pages become larger again, each: slowly, since a page that can't be read costs the time of a request. */
const recovery = 17 / 16;

/**
 * How many keys a page may have. etcd knows no limit in bytes, so it is derived from the pages before. But the next keys may
 * be many times as large as those were, since clients choose names and sizes:
 *
 * - a page has at most twice as many keys as the one before;
 * - it has more than 128 only if they all belong to the same group, as those of one type of resources do: values of one
 *   group mostly have similar sizes;
 * - it has at most 512. So its values are never larger than 544 MiB if they have the default limit of a resource, and 768 MiB
 *   if they have that of a request to etcd. For 200,000 small resources, these are 400 pages; see `GroupPart` for why they
 *   take etcd no longer than fewer large ones;
 * - one that can't be read is tried again with fewer, and those that follow become larger again: etcd may only have been
 *   busy, and is so for longer if it is asked for many small pages.
 */
export class PageSize {
	#bytes = pageBytes.most;
	#keys = pageKeys.first;

	/** The maximum of keys in the next page. */
	get keys(): number {
		return this.#keys;
	}

	/** Whether the next page may only have keys of one group. */
	get isOfGroup(): boolean {
		return this.#keys > pageKeys.mostOfAll;
	}

	/** The next page may begin another group. */
	endOfGroup(): void {
		this.#keys = Math.min(this.#keys, pageKeys.mostOfAll);
	}

	/** A page was read. */
	read(page: readonly KeyValue[]): void {
		if (page.length === 0) {
			return;
		}
		this.#bytes = Math.min(pageBytes.most, this.#bytes * recovery);
		const bytes = page.reduce((sum, { value }) => sum + value.byteLength, 0);
		const fitting = Math.floor((this.#bytes * page.length) / Math.max(1, bytes));
		this.#keys = Math.max(1, Math.min(pageKeys.mostOfGroup, 2 * this.#keys, fitting));
	}

	/** A page could not be read: its response takes too long, or is too large. Returns whether it can be smaller. */
	reduce(): boolean {
		const canReduce = this.#keys > 1;
		this.#keys = Math.max(1, Math.floor(this.#keys / reduction));
		// The connection may be slow, so that later pages should be smaller too.
		this.#bytes = Math.max(pageBytes.least, this.#bytes / reduction);
		return canReduce;
	}
}
