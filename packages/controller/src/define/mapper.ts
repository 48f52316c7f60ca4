import type { DescMessage } from "@bufbuild/protobuf";
import type { ID } from "@plinth/proto";
import type { Decoded } from "@plinth/resource";
import type { MapperContext } from "./context.ts";

/** The result of a mapper: the IDs of the managed resources to reconcile. */
export type MapResult = Iterable<ID> | Promise<Iterable<ID>>;

/**
 * Maps a changed resource to the managed resources that depend on it. After an update it is called for
 * the previous and for the current version, so that resources that no longer depend on it are reconciled
 * too.
 *
 * An error affects only this resource, which is mapped again after a backoff.
 */
export type Mapper<Desc extends DescMessage = DescMessage> = (
	context: MapperContext,
	changed: Decoded<Desc>,
) => MapResult;

const readers = new WeakSet<object>();

/**
 * Declares that a mapper, or a part of one, neither modifies nor keeps the objects that it receives, so
 * that it can be passed the shared resources, and its cache can return them, without copies.
 */
export function readOnly<Part extends object>(part: Part): Part {
	readers.add(part);
	return part;
}

/** Whether it was declared as read-only. */
export function isReadOnly(part: object): boolean {
	return readers.has(part);
}
