import { Code } from "@connectrpc/connect";
import type { RangeResponse } from "../gen/etcdserverpb/rpc_pb.ts";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import type { KeyRange, PagedRange } from "../keys.ts";
import type { EtcdClient } from "./etcd-client.ts";
import { EtcdError } from "./etcd-error.ts";
import { GroupPart } from "./group-part.ts";
import { PageSize } from "./page-size.ts";

/**
 * Reads a range of keys as of one revision, page by page, so that few responses are large, and all of them are limited: see
 * `PageSize`.
 *
 * @throws EtcdError; RevisionCompacted; OtherCluster; WentBack; the signal's reason.
 */
export async function* rangePages(
	client: Pick<EtcdClient, "range">,
	range: PagedRange,
	revision: bigint,
	signal: AbortSignal,
): AsyncGenerator<readonly KeyValue[], void, undefined> {
	const size = new PageSize();
	let { key } = range;
	let groupEnd: Uint8Array | undefined;
	/** What pages with more keys are limited to; absent for others, which may begin another group. */
	let part: GroupPart | undefined;
	for (;;) {
		if (groupEnd === undefined) {
			size.endOfGroup();
		}
		part =
			size.isOfGroup && groupEnd !== undefined ? (part ?? new GroupPart(key, groupEnd)) : undefined;
		const end = part?.end ?? range.rangeEnd;
		const page = await readPage(client, { key, rangeEnd: end }, { revision, size, signal });
		yield page.kvs;
		size.read(page.kvs);
		const last = page.kvs.at(-1);
		if (page.more && last !== undefined) {
			key = Buffer.concat([last.key, Buffer.of(0)]);
			groupEnd = range.groupEnd(last.key);
			part?.onPage(page);
		} else if (Buffer.compare(end, range.rangeEnd) < 0) {
			key = end;
			groupEnd = part?.widen() ? groupEnd : undefined;
		} else {
			return;
		}
	}
}

interface PageOptions {
	readonly revision: bigint;
	readonly size: PageSize;
	readonly signal: AbortSignal;
}

/** Reads the first keys of a range: fewer of them, if etcd fails to send as many in time. */
async function readPage(
	client: Pick<EtcdClient, "range">,
	range: KeyRange,
	{ revision, size, signal }: PageOptions,
): Promise<RangeResponse> {
	for (;;) {
		try {
			return await client.range({ ...range, limit: BigInt(size.keys), revision }, signal);
		} catch (error) {
			if (!(mayBeTooLarge(error) && size.reduce())) {
				throw error;
			}
		}
	}
}

/** Whether fewer keys may succeed: there was no response in time, or it exceeds what etcd sends. */
function mayBeTooLarge(error: unknown): boolean {
	return (
		error instanceof EtcdError &&
		(error.code === Code.DeadlineExceeded || error.code === Code.ResourceExhausted)
	);
}
