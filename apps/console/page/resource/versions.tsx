import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
	changedField,
	documentOf,
	type FieldChange,
	fieldChanges,
	type KnownTypes,
} from "@plinth/documents";
import type { ID } from "@plinth/proto";
import {
	Change,
	HistoryService,
	type ListVersionsResponse,
	type ResourceVersion,
} from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import type { Tone } from "../model/tone.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { DetailCard } from "./detail-card.tsx";
import { useDetail } from "./use-detail.ts";

/** So many versions are shown, and one more for comparison. */
const mostVersions = 20;

/** So many fields of a version are shown. */
const mostFields = 12;

/** The recent versions of all resources with a name, the newest first, each with what it changed. */
export function Versions({
	id,
	version,
	types,
}: {
	readonly id: ID;
	/** Changes when there is another version. */
	readonly version: string;
	readonly types: KnownTypes;
}) {
	const query = useDetail("versions", { id, version }, (connection, named, signal) =>
		connection
			.client(HistoryService)
			.listVersions({ id: named, limit: mostVersions + 1 }, { signal }),
	);
	return (
		<DetailCard title="Recent versions" what="the history" query={query} wide>
			{(response) => <Timeline response={response} types={types} />}
		</DetailCard>
	);
}

function Timeline({
	response: { versions, hasMore, includesCreation },
	types,
}: {
	readonly response: ListVersionsResponse;
	readonly types: KnownTypes;
}) {
	return (
		<ol className="timeline">
			{versions.slice(0, mostVersions).map((each, at) => (
				<li key={`${each.version} ${each.change}`}>
					<VersionHead version={each} />
					<Changes changes={changesOf(each, versions[at + 1], types)} />
				</li>
			))}
			{(hasMore || versions.length > mostVersions) && <li className="muted">There are more.</li>}
			{!hasMore && !includesCreation && (
				<li className="muted">What was before is no longer known.</li>
			)}
		</ol>
	);
}

function VersionHead({ version }: { readonly version: ResourceVersion }) {
	const { change, writtenAt, writtenBy } = version;
	const { name, tone } = changeNames.get(change) ?? { name: "written", tone: "plain" };
	return (
		<div>
			<Badge tone={tone}>{name}</Badge> <code>{version.version}</code>{" "}
			<span className="muted">
				{writtenBy !== "" && `by ${writtenBy}, `}
				<Age ms={writtenAt && timestampMs(writtenAt)} suffix=" ago" />
			</span>
		</div>
	);
}

const changeNames: ReadonlyMap<Change, { readonly name: string; readonly tone: Tone }> = new Map([
	[Change.CREATED, { name: "created", tone: "good" }],
	[Change.UPDATED, { name: "updated", tone: "plain" }],
	[Change.DELETED, { name: "deleted", tone: "bad" }],
]);

/** What a version changed, but for what every version changes. */
function changesOf(
	{ change, resource }: ResourceVersion,
	before: ResourceVersion | undefined,
	types: KnownTypes,
): readonly FieldChange[] {
	if (change !== Change.UPDATED || resource === undefined || before?.resource === undefined) {
		return [];
	}
	return fieldChanges(documentOf(before.resource, types), documentOf(resource, types)).filter(
		({ path }) => path[0] !== "version" && path[0] !== "generation" && path.at(-1) !== "updated_at",
	);
}

function Changes({ changes }: { readonly changes: readonly FieldChange[] }) {
	if (changes.length === 0) {
		return null;
	}
	return (
		<ul className="changes">
			{changes.slice(0, mostFields).map(({ path, before, after }) => (
				<li key={changedField({ path })}>
					<span className="tree-key">{changedField({ path })}</span>
					{before !== undefined && <del>{text(before)}</del>}
					{after !== undefined && <ins>{text(after)}</ins>}
				</li>
			))}
			{changes.length > mostFields && (
				<li className="muted">{changes.length - mostFields} more fields</li>
			)}
		</ul>
	);
}

/** A value in one line, cut. */
function text(value: FieldChange["after"]): string {
	const whole = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
	return whole.length <= 200 ? whole : `${whole.slice(0, 200)}…`;
}
