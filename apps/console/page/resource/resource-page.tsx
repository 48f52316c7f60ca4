import type { KnownType, KnownTypes } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { finalizersOf, idOf, isMarkedForDeletion, ulidTimeMs } from "@plinth/resource";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTypes } from "../app/types-query.ts";
import { zonedDateTime } from "../model/format.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";
import { LiveBadge } from "../parts/live-badge.tsx";
import { ResourceLink } from "../parts/resource-link.tsx";
import { ConditionBadges } from "./condition-badges.tsx";
import { Conditions } from "./conditions.tsx";
import { Controllers } from "./controllers.tsx";
import { Data } from "./data.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { DeletionWaits } from "./deletion-waits.tsx";
import { Events } from "./events.tsx";
import { Ownership } from "./ownership.tsx";
import { References } from "./references.tsx";
import { useLiveResource } from "./use-live-resource.ts";
import { Versions } from "./versions.tsx";

const route = getRouteApi("/types/$type/$name");

/** One resource, and all that the server knows about it. */
export function ResourcePage() {
	const { type: key, name } = route.useParams();
	const types = useTypes();
	const type = types?.byKey.get(key);
	if (types === undefined) {
		return null;
	}
	return type === undefined ? (
		<div className="page">
			<h1>{name}</h1>
			<p>The server has no type {key}, or you may not use it.</p>
		</div>
	) : (
		<LivePage type={type} types={types} name={name} />
	);
}

function LivePage({
	type,
	types,
	name,
}: {
	readonly type: KnownType;
	readonly types: KnownTypes;
	readonly name: string;
}) {
	const { partition = "", namespace = "" } = route.useSearch();
	const id = useMemo(
		() => idOf(type, name, { partition, namespace }),
		[type, name, partition, namespace],
	);
	const { resource, isGone, state } = useLiveResource(id);
	return (
		<div className="page">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/types/$type" params={{ type: type.key }} search={{ partition, namespace }}>
						{type.type.kind}
					</Link>
				</span>
				<h1>{name}</h1>
				<span className="muted">
					{[id.tenancy?.partition, id.tenancy?.namespace].filter(Boolean).join("/")}
				</span>
				{isGone && <Badge tone="bad">{resource ? "deleted" : "not found"}</Badge>}
				{!isGone && resource && isMarkedForDeletion(resource) && (
					<Badge tone="unsure">being deleted</Badge>
				)}
				{!isGone && resource && <ConditionBadges resource={resource} />}
				<LiveBadge state={state} />
				{!isGone && resource && <Actions type={type} resource={resource} />}
			</div>
			{state.phase === "refused" && (
				<p className="notice bad" role="alert">
					{state.reason}
				</p>
			)}
			{resource === undefined ? (
				<p className="muted">
					{isGone ? "There is no resource with this name. It may have existed:" : "Loading…"}
				</p>
			) : (
				<Sections type={type} resource={resource} types={types} isGone={isGone} />
			)}
			{(isGone || resource !== undefined) && (
				<Versions id={id} version={`${resource?.version} ${isGone}`} types={types} />
			)}
		</div>
	);
}

/** What can be done with a resource. */
function Actions({ type, resource }: { readonly type: KnownType; readonly resource: Resource }) {
	const [isDeleting, setIsDeleting] = useState(false);
	const { name = "", tenancy } = resource.id ?? {};
	const link = {
		params: { type: type.key, name },
		search: { partition: tenancy?.partition ?? "", namespace: tenancy?.namespace ?? "" },
	};
	return (
		<span className="actions">
			<Link to="/types/$type/$name/graph" {...link} className="button">
				Graph
			</Link>
			<Link to="/types/$type/$name/edit" {...link} className="button">
				Edit
			</Link>
			{!isMarkedForDeletion(resource) && (
				<button type="button" onClick={() => setIsDeleting(true)}>
					Delete…
				</button>
			)}
			{isDeleting && <DeleteDialog resource={resource} onClose={() => setIsDeleting(false)} />}
		</span>
	);
}

function Sections({
	type,
	resource,
	types,
	isGone,
}: {
	readonly type: KnownType;
	readonly resource: Resource;
	readonly types: KnownTypes;
	readonly isGone: boolean;
}) {
	return (
		<>
			{!isGone && isMarkedForDeletion(resource) && (
				<DeletionWaits type={type} resource={resource} />
			)}
			<div className="cards">
				<Conditions resource={resource} />
				<Facts resource={resource} />
				<Data resource={resource} types={types} />
				{!isGone && <Controllers type={type.key} resource={resource} />}
				<Events resource={resource} />
				{!isGone && <References resource={resource} />}
				{!isGone && <Ownership resource={resource} />}
			</div>
		</>
	);
}

function Facts({ resource }: { readonly resource: Resource }) {
	const { id, generation, version, metadata, owner } = resource;
	const createdMs = ulidTimeMs(id?.uid ?? "");
	const finalizers = finalizersOf(resource);
	const shown = Object.entries(metadata).filter(
		([key]) => key !== "finalizers" && key !== "deletionTimestamp",
	);
	return (
		<Card title="Identity" wide>
			<dl className="facts identity">
				<Fact name="Age">
					<Age ms={createdMs} />
				</Fact>
				<Fact name="Created">{createdMs !== undefined && zonedDateTime(createdMs)}</Fact>
				<Fact name="Version">{version}</Fact>
				<Fact name="Generation">
					<code>{generation}</code>
				</Fact>
				<Fact name="UID">
					<code>{id?.uid}</code>
				</Fact>
				{owner?.type !== undefined && (
					<Fact name="Owner">
						<ResourceLink
							resource={{ type: owner.type, tenancy: owner.tenancy ?? {}, name: owner.name }}
						/>
					</Fact>
				)}
				{finalizers.length > 0 && <Fact name="Finalizers">{finalizers.join(", ")}</Fact>}
				{shown.map(([key, value]) => (
					<Fact key={key} name={key}>
						{value}
					</Fact>
				))}
			</dl>
		</Card>
	);
}

function Fact({ name, children }: { readonly name: string; readonly children: React.ReactNode }) {
	return (
		<div>
			<dt>{name}</dt>
			<dd>{children}</dd>
		</div>
	);
}
