import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import type { KeyRange } from "../keys.ts";
import type { EtcdClient } from "./etcd-client.ts";

/** The approximate size of a page; the number of keys is derived from the previous page. */
const pageBytes = 2 * 1024 * 1024;
const pageKeys = { first: 2, least: 2, most: 5000 };

/**
 * Reads a range of keys as of one revision, page by page, so that no response is large.
 *
 * @throws EtcdError; RevisionCompacted; OtherCluster; WentBack; the signal's reason.
 */
export async function* rangePages(
	client: Pick<EtcdClient, "range">,
	{ key: begin, rangeEnd }: KeyRange,
	revision: bigint,
	signal: AbortSignal,
): AsyncGenerator<readonly KeyValue[], void, undefined> {
	let key = begin;
	let limit = pageKeys.first;
	for (let more = true; more; ) {
		const page = await client.range({ key, rangeEnd, limit: BigInt(limit), revision }, signal);
		yield page.kvs;
		const last = page.kvs.at(-1);
		more = page.more && last !== undefined;
		if (last !== undefined) {
			const bytes = page.kvs.reduce((sum, { value }) => sum + value.byteLength, 0);
			key = Buffer.concat([last.key, Buffer.of(0)]);
			const fitting = Math.floor((pageBytes * page.kvs.length) / Math.max(1, bytes));
			limit = Math.min(pageKeys.most, Math.max(pageKeys.least, fitting));
		}
	}
}
