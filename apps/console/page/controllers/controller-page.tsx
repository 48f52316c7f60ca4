import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
	type Controller,
	ControllerService,
	type Reconcile,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useConnection } from "../app/connection.ts";
import { useTypes } from "../app/types-query.ts";
import { count, plural, shortDuration } from "../model/format.ts";
import { phaseName, phaseTone } from "../overview/attention.ts";
import { useOverview } from "../overview/use-overview.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";
import { ErrorNotice } from "../parts/error-notice.tsx";
import { LiveBadge } from "../parts/live-badge.tsx";
import { NumberCell } from "../parts/number-cell.tsx";
import { ReconcileKey } from "../parts/reconcile-key.tsx";
import { TypeName } from "../parts/type-name.tsx";
import { DurationHistogram } from "./duration-histogram.tsx";

const route = getRouteApi("/controllers/$name");

/** One controller: its queues, what fails, what it caches, and where it runs. */
export function ControllerPage() {
	const { name } = route.useParams();
	const connection = useConnection();
	// Each overview says that there may be more to know.
	const { overview, state } = useOverview();
	const { data, error } = useQuery({
		queryKey: ["controller", name, overview?.takenAt?.seconds.toString()],
		placeholderData: keepPreviousData,
		queryFn: ({ signal }) =>
			connection.client(ControllerService).getController({ name }, { signal }),
	});
	const { controller, failing = [], running = [] } = data ?? {};
	return (
		<div className="page">
			<div className="page-head">
				<span className="crumbs">
					<Link to="/controllers">Controllers</Link>
				</span>
				<h1>{name}</h1>
				{controller !== undefined && (
					<Badge tone={phaseTone(controller.phase)}>{phaseName(controller.phase)}</Badge>
				)}
				<LiveBadge state={state} />
			</div>
			{error !== null && <ErrorNotice error={error} what="the controller" />}
			{controller !== undefined && (
				<div className="cards">
					{failing.length > 0 && (
						<Card title="Failing" wide>
							<Reconciles reconciles={failing} />
						</Card>
					)}
					<Work controller={controller} hasFailing={failing.length > 0} />
					<Card title="Reconcile times" aside="since the start, log scale">
						<DurationHistogram counts={controller.reconciles?.durations ?? []} />
					</Card>
					<Queues controller={controller} />
					<Servers controller={controller} />
					<Caches controller={controller} />
					<Card title="In progress" wide>
						{running.length === 0 ? (
							<p className="muted">None</p>
						) : (
							<Reconciles reconciles={running} />
						)}
					</Card>
				</div>
			)}
		</div>
	);
}

function Work({
	controller,
	hasFailing,
}: {
	readonly controller: Controller;
	readonly hasFailing: boolean;
}) {
	const { manages, watches, reconciles, restarts, lastError } = controller;
	const { succeeded = 0n, failed = 0n, total, longest } = reconciles ?? {};
	const done = Number(succeeded + failed);
	return (
		<Card title="Work">
			<dl className="facts even">
				<Fact name="Manages">
					<TypeLink name={manages} />
				</Fact>
				<Fact name="Watches">
					{watches.map((each) => (
						<div key={each}>
							<TypeLink name={each} />
						</div>
					))}
				</Fact>
				<Fact name="Reconciles">
					{count(succeeded)} succeeded, {count(failed)} failed
				</Fact>
				<Fact name="Duration">
					{total && done > 0 ? `${(durationMs(total) / done).toFixed(1)} ms on average` : "–"}
					{longest && `, ${durationMs(longest).toFixed(0)} ms at most`}
				</Fact>
				<Fact name="Restarts">{count(restarts)}</Fact>
				{!hasFailing && (
					<Fact name="Failing">
						<span className="muted">None</span>
					</Fact>
				)}
			</dl>
			{lastError !== undefined && (
				<p className="notice bad">
					Its last run failed{" "}
					<Age ms={lastError.occurredAt && timestampMs(lastError.occurredAt)} suffix=" ago" />:{" "}
					<bdi>{lastError.message}</bdi>
				</p>
			)}
		</Card>
	);
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
	return (
		<div>
			<dt>{name}</dt>
			<dd>{children}</dd>
		</div>
	);
}

function TypeLink({ name }: { readonly name: string }) {
	const types = useTypes();
	return types?.byKey.has(name) ? (
		<Link to="/types/$type" params={{ type: name }}>
			{name}
		</Link>
	) : (
		name
	);
}

/** The columns of the queues, with what they count. */
const queueFigures: readonly (readonly [name: string, meaning: string])[] = [
	["Failing", "their last run has failed"],
	["Longest wait", "how long the first in the queue has been waiting"],
	["Queued", "waiting for a free worker"],
	["Scheduled", "run again at a later time, after a failure or because the last run asked for it"],
	["In progress", "being processed now"],
	["Held", "waiting until the cache contains the controller's own writes"],
];

function Queues({ controller: { requests, mappings } }: { readonly controller: Controller }) {
	const queues = [
		...(requests === undefined ? [] : [["reconciles", requests] as const]),
		...Object.entries(mappings).sort(([a], [b]) => (a < b ? -1 : 1)),
	];
	return (
		<Card title="Queues" wide>
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							<th scope="col">Queue</th>
							{queueFigures.map(([name, meaning]) => (
								<th key={name} scope="col" className="number" title={meaning}>
									{name}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{queues.map(([name, queue]) => (
							<tr key={name}>
								<td>
									<TypeName of={name} />
								</td>
								<NumberCell value={queue.failing} isBad />
								<td className="number">
									{queue.oldestKey === "" || queue.oldestWaiting === undefined
										? "–"
										: shortDuration(durationMs(queue.oldestWaiting))}
								</td>
								<NumberCell value={queue.live + queue.background} />
								<NumberCell value={queue.delayed} />
								<NumberCell value={queue.active} />
								<NumberCell value={queue.held} />
							</tr>
						))}
					</tbody>
				</table>
			</div>
			<p className="muted">
				Scheduled: run again later, after a failure or because the last run asked for it. Held:
				waiting until the cache contains the controller's own writes.
			</p>
		</Card>
	);
}

/** Resources that fail or are being reconciled, each with for how long, or why. */
function Reconciles({ reconciles }: { readonly reconciles: readonly Reconcile[] }) {
	return (
		<ul className="list scrolls">
			{reconciles.map(({ key, failure, inState, server }) => (
				<li key={`${server} ${key}`}>
					<ReconcileKey of={key} />{" "}
					<span className="muted">
						{failure !== undefined && plural(failure.attempts, "attempt")}
						{failure === undefined && inState && `for ${shortDuration(durationMs(inState))}`}
					</span>
					{failure !== undefined && <p className="bad-text">{failure.message}</p>}
				</li>
			))}
		</ul>
	);
}

function Caches({ controller: { cachedTypes, undecodable } }: { readonly controller: Controller }) {
	return (
		<Card title="Cache">
			<ul className="list">
				{cachedTypes.map(({ type, size, indexes }) => (
					<li key={type}>
						<TypeLink name={type} /> {plural(size, "resource")}
						<span className="muted">
							{Object.entries(indexes).map(
								([name, keys]) => `, indexed by ${name} (${plural(keys, "key")})`,
							)}
						</span>
					</li>
				))}
				{(undecodable?.errors ?? []).map((error) => (
					<li key={error} className="bad-text">
						{error}
					</li>
				))}
			</ul>
		</Card>
	);
}

function Servers({ controller: { servers } }: { readonly controller: Controller }) {
	return (
		<Card title="Runs on">
			<ul className="list">
				{servers.map(({ server, phase, inPhase, shards }) => (
					<li key={server}>
						<bdi>{server}</bdi> <Badge tone={phaseTone(phase)}>{phaseName(phase)}</Badge>
						<span className="muted">
							{inPhase && ` for ${shortDuration(durationMs(inPhase))}`}
							{shards && `, ${shards.open.length} of ${shards.count} shards`}
						</span>
					</li>
				))}
			</ul>
		</Card>
	);
}
