import type { DescMessage } from "@bufbuild/protobuf";
import type { ID } from "@plinth/proto";
import type { Decoded } from "@plinth/resource";
import type { MapperContext } from "./context.ts";

/** What a mapper answers: the IDs of the managed resources to reconcile. */
export type MapResult = Iterable<ID> | Promise<Iterable<ID>>;

/**
 * From a changed resource to the managed resources that depend on it. After an update it is called
 * for the resource as it was and as it is, so that what no longer depends on it is reconciled too.
 *
 * What it throws or rejects with fails this resource alone, which is mapped again after a backoff.
 */
export type Mapper<Desc extends DescMessage = DescMessage> = (
	context: MapperContext,
	changed: Decoded<Desc>,
) => MapResult;

const readers = new WeakSet<object>();

/**
 * Declares that a mapper, or a part of one, neither changes nor keeps what it gets, so that it and
 * its cache may answer the shared resources instead of copies.
 */
export function readsOnly<Part extends object>(part: Part): Part {
	readers.add(part);
	return part;
}

/** Whether it was declared to read only. */
export function isReadsOnly(part: object): boolean {
	return readers.has(part);
}
