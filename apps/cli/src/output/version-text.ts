import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { changedField, documentOf, type KnownTypes } from "@plinth/documents";
import {
	Change,
	type ListVersionsResponse,
	type ResourceVersion,
} from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import type { Io } from "../io.ts";
import { changeLines } from "./change-lines.ts";
import type { ComparedVersion } from "./compared-versions.ts";
import { oneLine } from "./printable.ts";
import { ago } from "./reconcile-cells.ts";

type Completeness = Pick<
	ListVersionsResponse,
	"includesCreation" | "completeSince" | "completeSinceVersion" | "hasMore"
>;

/** How a history is shown. */
export interface HistoryLayout {
	readonly io: Pick<Io, "width" | "color" | "clock">;
	/** Whether all changes are shown, in full. */
	readonly isWide: boolean;
}

/** A history for people: since when it is complete, then each version with its changes. */
export function historyText(
	completeness: Completeness,
	versions: readonly ComparedVersion[],
	{ io, isWide }: HistoryLayout,
): string {
	const nowMs = io.clock.now();
	const width = isWide ? undefined : io.width;
	const blocks = versions.map(({ version, changes }) => {
		return [
			`${headingOf(version, nowMs)}\n`,
			`  ${factsOf(version, isWide).join(", ")}\n`,
			...changeLines(changes ?? [], { width, color: io.color, isWide }),
			...(changes === undefined && version.change === Change.UPDATED
				? ["  what changed is not known: the previous version is not available\n"]
				: []),
		].join("");
	});
	return [`${completenessText(completeness, nowMs, isWide)}\n`, ...blocks].join("\n");
}

function completenessText(
	{ includesCreation, completeSince, completeSinceVersion, hasMore }: Completeness,
	nowMs: number,
	isWide: boolean,
): string {
	if (includesCreation) {
		return "complete since the resource was created";
	}
	const version = isWide ? `, version ${completeSinceVersion}` : "";
	const since = `${timeText(completeSince)} (${ago(completeSince, nowMs)} ago${version})`;
	return `complete since ${since}; ${hasMore ? "older versions are not shown" : "earlier changes are not known"}`;
}

/** As in `version 42: updated 5m ago by alice`. */
function headingOf(
	{ change, version, writtenAt, writtenBy }: ResourceVersion,
	nowMs: number,
): string {
	const age = ago(writtenAt, nowMs);
	const when = age === "" ? "" : ` ${age} ago`;
	const by = writtenBy === "" ? " by an unknown writer" : ` by ${writtenBy}`;
	return oneLine(`version ${version}: ${words[change] ?? "written"}${when}${by}`);
}

/** Of versions from before the history is complete, and of changes that only newer servers know, it is not known. */
const words: Partial<Readonly<Record<number, string>>> = {
	[Change.CREATED]: "created",
	[Change.UPDATED]: "updated",
	[Change.DELETED]: "deleted",
};

function factsOf({ writtenAt, resource }: ResourceVersion, isWide: boolean): readonly string[] {
	const uid = resource?.id?.uid ?? "";
	return [
		...(writtenAt === undefined ? [] : [timeText(writtenAt)]),
		`generation ${resource?.generation ?? ""}`,
		...(isWide ? [`uid ${uid}`] : []),
	];
}

function timeText(time: Timestamp | undefined): string {
	return time === undefined ? "" : new Date(timestampMs(time)).toISOString();
}

/** A history for programs. */
export function historyDocument(
	{ hasMore, includesCreation, completeSince, completeSinceVersion }: Completeness,
	versions: readonly ComparedVersion[],
	types: KnownTypes,
): JsonObject {
	return {
		complete_since: timeText(completeSince),
		complete_since_version: completeSinceVersion,
		includes_creation: includesCreation,
		has_more: hasMore,
		versions: versions.map(({ version, changes }) => ({
			...versionDocument(version, types),
			...(changes && {
				changes: changes.map(({ path, ...values }): JsonValue => {
					return { field: changedField({ path }), ...values };
				}),
			}),
		})),
	};
}

function versionDocument(
	{ change, version, writtenAt, writtenBy, resource }: ResourceVersion,
	types: KnownTypes,
): JsonObject {
	return {
		version,
		change: words[change] ?? "unknown",
		generation: resource?.generation ?? "",
		...(writtenAt && { written_at: timeText(writtenAt) }),
		...(writtenBy !== "" && { written_by: writtenBy }),
		...(resource && { resource: documentOf(resource, types) }),
	};
}
