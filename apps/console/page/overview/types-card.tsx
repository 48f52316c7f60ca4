import type { TypeOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Link } from "@tanstack/react-router";
import { useTypes } from "../app/types-query.ts";
import { count, rate } from "../model/format.ts";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";
import { NumberHeadings } from "../parts/number-headings.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { TypeName } from "../parts/type-name.tsx";
import { typesByAttention } from "./attention.ts";
import type { OverviewSample } from "./overview-sample.ts";

/** The types with resources, those that need attention first. */
export function TypesCard({
	types,
	samples,
}: {
	readonly types: readonly TypeOverview[];
	readonly samples: readonly OverviewSample[];
}) {
	const known = useTypes();
	// Older servers do not count them.
	const hasDeletions = types.some(({ beingDeleted }) => beingDeleted !== undefined);
	return (
		<Card title="Resources by type" wide>
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							<th scope="col">Type</th>
							<NumberHeadings
								of={[
									"False",
									"Stale",
									...(hasDeletions ? ["Deleting"] : []),
									"Resources",
									"Writes/s",
								]}
							/>
							<th scope="col">Last minutes</th>
						</tr>
					</thead>
					<tbody>
						{typesByAttention(types).map((each) => (
							<tr key={each.type}>
								<td>
									{known?.byKey.has(each.type) ? (
										<Link to="/types/$type" params={{ type: each.type }}>
											<TypeName of={each.type} />
										</Link>
									) : (
										<TypeName of={each.type} />
									)}
								</td>
								<td className="number">
									<Figure
										type={each.type}
										value={each.withFalseCondition}
										tone="bad"
										words="=false"
									/>
								</td>
								<td className="number">
									<Figure
										type={each.type}
										value={each.withStaleCondition}
										tone="unsure"
										words="?"
									/>
								</td>
								{hasDeletions && (
									<td className="number">
										<Figure
											type={each.type}
											value={each.beingDeleted ?? 0n}
											tone="unsure"
											words="deleting"
										/>
									</td>
								)}
								<td className="number">{count(each.resources)}</td>
								<td className="number">{rate(each.writesPerSecond)}</td>
								<td>
									<Sparkline
										values={samples.map(({ writesPerSecond }) => writesPerSecond[each.type] ?? 0)}
										label={`writes of ${each.type}`}
									/>
								</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
		</Card>
	);
}

/** A number that is alarming unless it is 0, and then leads to the resources that it counts. */
function Figure({
	type,
	value,
	tone,
	words,
}: {
	readonly type: string;
	readonly value: bigint;
	readonly tone: "bad" | "unsure";
	/** What the status of these resources contains. */
	readonly words: string;
}) {
	return value > 0n ? (
		<Link to="/types/$type" params={{ type }} search={{ q: words }}>
			<Badge tone={tone}>{count(value)}</Badge>
		</Link>
	) : (
		<span className="muted">0</span>
	);
}
