import { ruleName } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import {
	type ListReferencesResponse,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { Badge } from "../parts/badge.tsx";
import { DetailCard } from "./detail-card.tsx";
import { KeyLink, keyText } from "./key-link.tsx";
import { useDetail } from "./use-detail.ts";

/** What a resource references, and what references it. */
export function References({ resource }: { readonly resource: Resource }) {
	const query = useDetail("references", resource, (connection, id, signal) =>
		connection.client(ReferenceService).listReferences({ id }, { signal }),
	);
	return (
		<DetailCard title="References" what="the references" query={query}>
			{(references) => (
				<>
					<h3>To others</h3>
					<Targets targets={references.targets} />
					<h3>From others</h3>
					<Incoming references={references} />
				</>
			)}
		</DetailCard>
	);
}

function Targets({ targets }: Pick<ListReferencesResponse, "targets">) {
	return targets.length === 0 ? (
		<p className="muted">It references nothing.</p>
	) : (
		<ul className="list">
			{targets.map(({ path, resource, rule, isMissing }) => (
				<li key={`${path} ${keyText(resource)}`}>
					<code>{path}</code> <KeyLink resource={resource} />{" "}
					<Badge tone="plain">{ruleName(rule)}</Badge>
					{isMissing && <Badge tone="bad">missing</Badge>}
				</li>
			))}
		</ul>
	);
}

function Incoming({ references }: { readonly references: ListReferencesResponse }) {
	const { incoming, hidden, hasMore, unknown } = references;
	const isNone = incoming.length === 0 && hidden === 0 && unknown.length === 0;
	return isNone ? (
		<p className="muted">Nothing references it.</p>
	) : (
		<ul className="list scrolls">
			{incoming.map(({ resource, uid, paths, rules, isOwnee }) => (
				<li key={uid || keyText(resource)}>
					<KeyLink resource={resource} />{" "}
					{paths.map((path) => (
						<code key={path}>{path} </code>
					))}
					{[...new Set(rules)].map((rule) => (
						<Badge key={rule} tone="plain">
							{ruleName(rule)}
						</Badge>
					))}
					{isOwnee && <Badge tone="plain">owned</Badge>}
				</li>
			))}
			{hidden > 0 && <li className="muted">{hidden} more that you may not read</li>}
			{hasMore && <li className="muted">There are more than 1,000.</li>}
			{unknown.map((each) => (
				<li key={each} className="muted">
					not known: {each}
				</li>
			))}
		</ul>
	);
}
