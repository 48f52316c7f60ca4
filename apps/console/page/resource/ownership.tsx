import { type Resource, ResourceService } from "@plinth/proto";
import { nameKey } from "@plinth/resource";
import { Badge } from "../parts/badge.tsx";
import { ResourceLink } from "../parts/resource-link.tsx";
import { DetailCard } from "./detail-card.tsx";
import { useDetail } from "./use-detail.ts";

/** So many owned resources are shown. */
const mostOwned = 200;

/** The owners of a resource, and what it owns. */
export function Ownership({ resource }: { readonly resource: Resource }) {
	const query = useDetail("owned", resource, (connection, owner, signal) =>
		connection.client(ResourceService).listByOwner({ owner, pageSize: mostOwned }, { signal }),
	);
	return (
		<DetailCard title="Ownership" what="what it owns" query={query}>
			{({ resources, nextPageToken }) => (
				<>
					<h3>Owners</h3>
					<Owners resource={resource} />
					<h3>Owned</h3>
					{resources.length === 0 ? (
						<p className="muted">It owns nothing in this storage.</p>
					) : (
						<ul className="list scrolls">
							{resources.map(
								({ id }) =>
									id?.type && (
										<li key={nameKey(id)}>
											<ResourceLink
												resource={{ type: id.type, tenancy: id.tenancy ?? {}, name: id.name }}
											/>
										</li>
									),
							)}
							{nextPageToken !== "" && <li className="muted">There are more than {mostOwned}.</li>}
						</ul>
					)}
				</>
			)}
		</DetailCard>
	);
}

function Owners({ resource: { owner, ownerReferences } }: { readonly resource: Resource }) {
	return owner === undefined && ownerReferences.length === 0 ? (
		<p className="muted">It has no owner.</p>
	) : (
		<ul className="list">
			{owner?.type !== undefined && (
				<li>
					<ResourceLink
						resource={{ type: owner.type, tenancy: owner.tenancy ?? {}, name: owner.name }}
					/>
				</li>
			)}
			{ownerReferences.map(
				({ type, tenancy, name, uid, region, controller, unsetOnDelete }) =>
					type && (
						<li key={`${uid} ${region} ${name}`}>
							<ResourceLink resource={{ type, tenancy: tenancy ?? {}, name, region }} />{" "}
							{controller && <Badge tone="plain">manages it</Badge>}
							{unsetOnDelete && <Badge tone="plain">unset</Badge>}
						</li>
					),
			)}
		</ul>
	);
}
