import { isOfServer, type KnownType, reasonOf } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import {
	type PlanDeletionResponse,
	type PlanDeletionResponse_Effect,
	PlanDeletionResponse_Effect_Kind,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { finalizersOf } from "@plinth/resource";
import { Link } from "@tanstack/react-router";
import { Fragment, type ReactElement } from "react";
import { dateTime } from "../model/format.ts";
import { Age } from "../parts/age.tsx";
import { ErrorNotice } from "../parts/error-notice.tsx";
import { markedAtMs, requesterOf } from "./deletion-request.ts";
import { KeyLink, keyText } from "./key-link.tsx";
import { useDetail } from "./use-detail.ts";
import { useEvents } from "./use-events.ts";
import { useReconciles } from "./use-reconciles.ts";

/** Since when a resource is being deleted, by whose request, what that waits for, and what can be done. */
export function DeletionWaits({
	type,
	resource,
}: {
	readonly type: KnownType;
	readonly resource: Resource;
}) {
	const { data, error } = useDetail("plan", resource, (connection, id, signal) =>
		connection.client(ReferenceService).planDeletion({ id }, { signal }),
	);
	const finalizers = data?.effects[0]?.finalizers ?? finalizersOf(resource);
	const foreign = finalizers.filter((each) => !isOfServer(each));
	const markedMs = markedAtMs(resource);
	const { data: recorded } = useEvents(resource);
	const uid = resource.id?.uid;
	const requester = requesterOf(
		recorded?.events.filter((event) => event.resource?.uid === uid) ?? [],
	);
	return (
		<section className="notice unsure deletion" aria-label="Deletion">
			<h2>
				Being deleted
				{markedMs !== undefined && (
					<>
						{" "}
						since {dateTime(markedMs)} (<Age ms={markedMs} />)
					</>
				)}
				{requester !== undefined && (
					<>
						, requested by <bdi>{requester}</bdi>
					</>
				)}
			</h2>
			<p>It waits for:</p>
			<ul>
				{finalizers
					.filter((each) => isOfServer(each))
					.map((each) => (
						<li key={each}>{reasonOf(each)}</li>
					))}
				{foreign.map((each) => (
					<li key={each}>
						finalizer <code>{each}</code>
					</li>
				))}
				{data !== undefined && <Obstacles plan={data} />}
			</ul>
			{foreign.length > 0 && <FinalizerHelp type={type} resource={resource} />}
			{error !== null && <ErrorNotice error={error} what="what it waits for" />}
		</section>
	);
}

/** Who may remove the finalizers of a resource, and what to do if nothing does. */
function FinalizerHelp({
	type,
	resource,
}: {
	readonly type: KnownType;
	readonly resource: Resource;
}) {
	const { data: reconciles } = useReconciles(resource);
	const names = [...new Set(reconciles?.map(({ controller }) => controller))];
	const { name = "", tenancy } = resource.id ?? {};
	return (
		<>
			{reconciles !== undefined &&
				(names.length === 0 ? (
					<p>No controller of this cluster manages this type, so none is known to remove it.</p>
				) : (
					<p>
						The controllers that manage this type may remove it:{" "}
						{names.map((each, at) => (
							<Fragment key={each}>
								{at > 0 && ", "}
								<Link to="/controllers/$name" params={{ name: each }}>
									{each}
								</Link>
							</Fragment>
						))}
						. See below what they do.
					</p>
				))}
			<p>
				Start the program that set the finalizer: it removes it when its cleanup is done. If there
				is no such program any more, clean up yourself, and then{" "}
				<Link
					to="/types/$type/$name/edit"
					params={{ type: type.key, name }}
					search={{ partition: tenancy?.partition ?? "", namespace: tenancy?.namespace ?? "" }}
				>
					edit the resource
				</Link>{" "}
				and remove the finalizer from its metadata.
			</p>
		</>
	);
}

function Obstacles({ plan }: { readonly plan: PlanDeletionResponse }) {
	const [root] = plan.effects;
	if (root === undefined) {
		return null;
	}
	return (
		<>
			{root.waitsFor.map((key) => {
				const effect = plan.effects.find(({ resource }) => keyText(resource) === keyText(key));
				const isBlocked = effect?.kind === PlanDeletionResponse_Effect_Kind.BLOCKED;
				const waits = effect === undefined ? [] : obstaclesOf(effect);
				return (
					<li key={keyText(key)}>
						<KeyLink resource={key} />
						{waits.length > 0 && (isBlocked ? ", which is blocked by " : ", which waits for ")}
						{waits.map((obstacle, at) => (
							<Fragment key={obstacle.key}>
								{at > 0 && ", "}
								{obstacle}
							</Fragment>
						))}
					</li>
				);
			})}
			{root.hidden > 0 && <li>{root.hidden} more resources that you may not read</li>}
			{root.unknown.map((each) => (
				<li key={each}>{each}</li>
			))}
		</>
	);
}

/** What one of the resources waits for that a deletion waits for. */
function obstaclesOf({
	finalizers,
	waitsFor,
	hidden,
	unknown,
}: PlanDeletionResponse_Effect): readonly ReactElement[] {
	return [
		...finalizers
			.filter((each) => !isOfServer(each))
			.map((each) => (
				<span key={`finalizer ${each}`}>
					finalizer <code>{each}</code>
				</span>
			)),
		...waitsFor.map((each) => <KeyLink key={keyText(each)} resource={each} />),
		...(hidden > 0 ? [<span key="hidden">{hidden} that you may not read</span>] : []),
		...unknown.map((each) => <span key={`unknown ${each}`}>{each}</span>),
	];
}
