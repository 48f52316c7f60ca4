import type { JsonObject } from "@bufbuild/protobuf";
import { documentOf, type FieldChange, fieldChanges, type KnownTypes } from "@plinth/documents";
import {
	Change,
	type ResourceVersion,
} from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";

/** A version with what it changed. */
export interface ComparedVersion {
	readonly version: ResourceVersion;
	/** Absent if the version before is not known, and for a deletion. */
	readonly changes: readonly FieldChange[] | undefined;
}

/** Compares each version with the one before it, which follows it. */
export function comparedVersions(
	newestFirst: readonly ResourceVersion[],
	types: KnownTypes,
): readonly ComparedVersion[] {
	return newestFirst.map((version, at) => ({
		version,
		changes: changesOf(version, newestFirst[at + 1], types),
	}));
}

function changesOf(
	{ change, resource }: ResourceVersion,
	before: ResourceVersion | undefined,
	types: KnownTypes,
): readonly FieldChange[] | undefined {
	if (resource === undefined || change === Change.DELETED) {
		return undefined;
	}
	const after = comparable(documentOf(resource, types));
	if (change === Change.CREATED) {
		const { type, name, partition, namespace, ...content } = after;
		return fieldChanges({}, content);
	}
	const isSame = before?.resource?.id?.uid === resource.id?.uid;
	return change === Change.UPDATED && before?.resource !== undefined && isSame
		? fieldChanges(comparable(documentOf(before.resource, types)), after)
		: undefined;
}

/** A document without what differs in each version. */
function comparable({ uid, version, generation, ...content }: JsonObject): JsonObject {
	return content;
}
