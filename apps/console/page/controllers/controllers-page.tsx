import { Link } from "@tanstack/react-router";
import { plural } from "../model/format.ts";
import { ControllersCard } from "../overview/controllers-card.tsx";
import { FailingCard } from "../overview/failing-card.tsx";
import { useOverview } from "../overview/use-overview.ts";
import { LiveBadge } from "../parts/live-badge.tsx";

/** All controllers, live. */
export function ControllersPage() {
	const { overview, samples, state } = useOverview();
	return (
		<div className="page">
			<div className="page-head">
				<h1>Controllers</h1>
				<LiveBadge state={state} />
				<span className="actions">
					<Link to="/flow" className="button">
						Graph
					</Link>
				</span>
			</div>
			{state.phase === "refused" && (
				<p className="notice" role="note">
					The controllers are not available: {state.reason}
				</p>
			)}
			{overview !== undefined && (
				<div className="cards">
					<FailingCard controllers={overview.controllers} takenAtMs={samples.at(-1)?.atMs} />
					<ControllersCard
						controllers={overview.controllers}
						title={plural(overview.controllers.length, "controller")}
					/>
				</div>
			)}
		</div>
	);
}
