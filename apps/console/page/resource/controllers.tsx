import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Resource } from "@plinth/proto";
import {
	type Reconcile,
	ReconcileState,
	ReconcileStateSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { Link } from "@tanstack/react-router";
import { shortDuration } from "../model/format.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { DetailCard } from "./detail-card.tsx";
import { useAllControllers } from "./use-all-controllers.ts";
import { useReconciles } from "./use-reconciles.ts";

/** What each controller does with a resource, and which ones only watch resources of its type. */
export function Controllers({
	type,
	resource,
}: {
	/** The key of the type. */
	readonly type: string;
	readonly resource: Resource;
}) {
	const query = useReconciles(resource);
	return (
		<DetailCard title="Controllers" what="what controllers do" query={query}>
			{(reconciles) => (
				<>
					{reconciles.length === 0 ? (
						<p className="muted">No controller manages resources of this type.</p>
					) : (
						<ul className="list">
							{reconciles.map((each) => (
								<li key={`${each.controller}/${each.server}`}>
									<ReconcileLine reconcile={each} />
								</li>
							))}
						</ul>
					)}
					<Watchers type={type} />
				</>
			)}
		</DetailCard>
	);
}

/** The controllers that watch a type; nothing if there are none, or the caller may not see them. */
function Watchers({ type }: { readonly type: string }) {
	const watchers = useAllControllers()?.filter(({ watches }) => watches.includes(type)) ?? [];
	return (
		watchers.length > 0 && (
			<>
				<h3>Watching this type</h3>
				<ul className="list">
					{watchers.map(({ name, manages }) => (
						<li key={name}>
							<Link to="/controllers/$name" params={{ name }}>
								{name}
							</Link>{" "}
							<span className="muted">to manage {manages}</span>
						</li>
					))}
				</ul>
			</>
		)
	);
}

function ReconcileLine({ reconcile }: { readonly reconcile: Reconcile }) {
	const { controller, state, inState, dueIn, failure } = reconcile;
	const isScheduled = state === ReconcileState.DELAYED;
	const name = isScheduled
		? "scheduled"
		: (ReconcileStateSchema.value[state]?.localName ?? "").toLowerCase();
	const dueMs = dueIn && durationMs(dueIn);
	return (
		<>
			<Link to="/controllers/$name" params={{ name: controller }}>
				{controller}
			</Link>{" "}
			<Badge tone={failure !== undefined ? "bad" : isScheduled ? "plain" : "good"}>
				{failure === undefined ? name : `failing, ${name}`}
			</Badge>
			<span className="muted">
				{inState && dueMs === undefined && ` for ${shortDuration(durationMs(inState))}`}
				{dueMs !== undefined && ` next run in ${dueMs < 1_000 ? "<1s" : shortDuration(dueMs)}`}
			</span>
			{failure !== undefined && (
				<p className="bad-text">
					<bdi>{failure.message}</bdi>{" "}
					<span className="muted">
						<Age ms={failure.occurredAt && timestampMs(failure.occurredAt)} suffix=" ago" />
					</span>
				</p>
			)}
		</>
	);
}
