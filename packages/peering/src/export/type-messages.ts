import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import {
	StreamedNameSchema,
	StreamedUpsertSchema,
	type StreamResponse,
	TypePositionSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { typeOf } from "@plinth/resource";
import { type StorageBackend, VersionCompacted, type WatchEvent } from "@plinth/storage";
import { compareVersions } from "../versions.ts";
import type { TypeExport } from "./type-export.ts";

/** A message of one type, without its sequence. */
export type TypeMessage = StreamResponse["message"];

/** Where the messages of a type come from. */
export interface TypeMessagesOptions {
	readonly backend: Pick<StorageBackend, "watchList" | "catchUp">;
	/** The version after which the peer continues; empty if it has nothing. */
	readonly position: string;
	readonly bookmarkMs: number;
	readonly signal: AbortSignal;
}

/**
 * The messages of one type: those after the position if the storage still has the changes, and a snapshot first if not.
 * In a snapshot, resources that have not changed since the position are only named: the peer has them.
 *
 * ```
 *   position ──▶ changes since are in the log ──▶ changes, without a snapshot
 *            └─▶ they are not ──▶ snapshot_start(position), names and changed resources, end_of_snapshot, changes
 *   no position ──▶ snapshot_start(""), all resources, end_of_snapshot, changes
 * ```
 *
 * @throws WatchClosed and StorageUnavailable, as the watches of a storage.
 */
export async function* typeMessages(
	exported: TypeExport,
	{ backend, position, bookmarkMs, signal }: TypeMessagesOptions,
): AsyncGenerator<TypeMessage, void, undefined> {
	const options = { bookmarkIntervalMs: bookmarkMs, signal, consistency: "strong" } as const;
	let since = position;
	if (position !== "") {
		const watch = backend.watchList(exported.query, { ...options, afterVersion: position });
		try {
			for await (const event of watch) {
				yield* changeMessages(exported, event);
			}
		} catch (failure) {
			if (!(failure instanceof VersionCompacted)) {
				throw failure;
			}
		}
		// A position that the storage has not reached is not of its history: the peer has to be given everything.
		const newest = await backend.catchUp(signal);
		since = compareVersions(position, newest) > 0 ? "" : position;
	}
	yield { case: "snapshotStart", value: positionOf(exported, since) };
	let isSnapshot = true;
	for await (const event of backend.watchList(exported.query, options)) {
		if (!isSnapshot) {
			yield* changeMessages(exported, event);
		} else if (event.kind === "end-of-snapshot") {
			isSnapshot = false;
			yield { case: "endOfSnapshot", value: positionOf(exported, event.version) };
		} else if (event.kind === "upsert" && exported.offers(event.resource)) {
			const isKnown = since !== "" && compareVersions(event.resource.version, since) <= 0;
			const message = isKnown
				? ({ case: "unchanged", value: nameOf(exported, event.resource, "") } as const)
				: upsertOf(exported, event.resource, "");
			yield message ?? deleteOf(exported, event.resource, "");
		}
	}
}

/** The message for a change. One that does not concern the peer only moves its position. */
function* changeMessages(exported: TypeExport, event: WatchEvent): Generator<TypeMessage> {
	const version = event.version ?? "";
	if (event.kind === "upsert" && exported.offers(event.resource)) {
		yield upsertOf(exported, event.resource, version) ??
			deleteOf(exported, event.resource, version);
		return;
	}
	const last = event.kind === "upsert" ? event.previous : event.kind === "delete" && event.resource;
	if (last && exported.offers(last)) {
		yield deleteOf(exported, last, version);
	} else if (version !== "") {
		yield { case: "position", value: positionOf(exported, version) };
	}
}

function upsertOf(
	exported: TypeExport,
	resource: Resource,
	version: string,
): TypeMessage | undefined {
	const outgoing = exported.outgoing(resource);
	return (
		outgoing && {
			case: "upsert",
			value: create(StreamedUpsertSchema, { resource: outgoing, version }),
		}
	);
}

function deleteOf(exported: TypeExport, resource: Resource, version: string): TypeMessage {
	return { case: "delete", value: nameOf(exported, resource, version) };
}

function nameOf({ type }: TypeExport, { id }: Resource, version: string) {
	return create(StreamedNameSchema, {
		type: typeOf(type.type),
		namespace: id?.tenancy?.namespace ?? "",
		name: id?.name ?? "",
		version,
	});
}

function positionOf({ type }: TypeExport, version: string) {
	return create(TypePositionSchema, { type: typeOf(type.type), version });
}
