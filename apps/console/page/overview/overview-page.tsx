import type { Overview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { bytes, count, rate } from "../model/format.ts";
import type { Tone } from "../model/tone.ts";
import { LiveBadge } from "../parts/live-badge.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { AttentionLine } from "./attention-line.tsx";
import { ControllersCard } from "./controllers-card.tsx";
import { FailingCard } from "./failing-card.tsx";
import { LeasesCard } from "./leases-card.tsx";
import type { OverviewSample } from "./overview-sample.ts";
import { ServersCard } from "./servers-card.tsx";
import { StorageCard } from "./storage-card.tsx";
import { TypesCard } from "./types-card.tsx";
import { useOverview } from "./use-overview.ts";

/** The health of the cluster in one screen. */
export function OverviewPage() {
	const { overview, samples, state } = useOverview();
	return (
		<div className="page">
			<div className="page-head">
				<h1>Overview</h1>
				<LiveBadge state={state} />
				{overview !== undefined && <AttentionLine overview={overview} />}
			</div>
			{state.phase === "refused" && (
				<p className="notice" role="note">
					The overview is not available: {state.reason}
				</p>
			)}
			{overview !== undefined && (
				<>
					<Tiles overview={overview} samples={samples} />
					<div className="cards">
						<FailingCard controllers={overview.controllers} takenAtMs={samples.at(-1)?.atMs} />
						<TypesCard types={overview.types} samples={samples} />
						<ControllersCard controllers={overview.controllers} />
						<ServersCard servers={overview.servers} />
						<StorageCard storage={overview.storage} servers={overview.servers} />
						<LeasesCard overview={overview} />
					</div>
				</>
			)}
		</div>
	);
}

function Tiles({
	overview: { storage, controllers, types },
	samples,
}: {
	readonly overview: Overview;
	readonly samples: readonly OverviewSample[];
}) {
	const isFalse = types.reduce((sum, each) => sum + Number(each.withFalseCondition), 0);
	const queued = controllers.reduce(
		(sum, { controller }) =>
			sum + (controller?.requests?.live ?? 0) + (controller?.requests?.background ?? 0),
		0,
	);
	const reconciles = controllers.reduce((sum, each) => sum + each.reconcilesPerSecond, 0);
	return (
		<div className="tiles">
			<Tile
				name="Resources"
				value={count(storage?.resources ?? 0n)}
				detail={`${bytes(storage?.bytes ?? 0n)} in memory`}
			/>
			<Tile
				name="False conditions"
				value={count(isFalse)}
				tone={isFalse > 0 ? "bad" : "good"}
				detail={isFalse > 0 ? "see the types below" : "all hold"}
			/>
			<Tile
				name="Commits per second"
				value={rate(storage?.commitsPerSecond ?? 0)}
				detail={storage?.kind ?? ""}
				values={samples.map((each) => each.commitsPerSecond)}
			/>
			<Tile
				name="Reconciles per second"
				value={rate(reconciles)}
				detail={`${count(queued)} queued`}
				values={samples.map((each) => each.reconcilesPerSecond)}
			/>
			<Tile
				name="Watches"
				value={count(storage?.watches ?? 0n)}
				detail={`${bytes(storage?.retainedBytes ?? 0n)} of history kept`}
				hint="Past changes and versions are kept for watches that resume and for reads that continue."
			/>
		</div>
	);
}

function Tile({
	name,
	value,
	detail,
	hint,
	tone = "plain",
	values,
}: {
	readonly name: string;
	readonly value: string;
	readonly detail: string;
	/** What the detail means. */
	readonly hint?: string;
	readonly tone?: Tone;
	readonly values?: readonly number[];
}) {
	return (
		<div className={`tile ${tone}`}>
			<div className="tile-name">{name}</div>
			<div className="tile-value">{value}</div>
			<div className="muted" title={hint}>
				{detail}
			</div>
			{values !== undefined && (
				<Sparkline values={values} label={`${name} during the last minutes`} />
			)}
		</div>
	);
}
