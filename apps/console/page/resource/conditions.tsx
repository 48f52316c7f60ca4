import { conditionsOf, stateName } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { conditionTone } from "../model/conditions.ts";
import { Age } from "../parts/age.tsx";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";

/** The conditions of a resource. Those of an older generation are marked: the reporter has not seen the newest one. */
export function Conditions({ resource }: { readonly resource: Resource }) {
	const conditions = conditionsOf(resource);
	if (conditions.length === 0) {
		return null;
	}
	return (
		<Card title="Conditions" wide>
			<div className="scroll-x">
				<table className="conditions">
					<thead>
						<tr>
							<th scope="col">Condition</th>
							<th scope="col">State</th>
							<th scope="col">Reason</th>
							<th scope="col">Message</th>
							<th scope="col">Reported by</th>
							<th scope="col">Updated</th>
						</tr>
					</thead>
					<tbody>
						{conditions.map((each) => {
							const { reporter, condition, isCurrent, updatedMs } = each;
							return (
								<tr key={`${reporter}/${condition.type}`}>
									<td className="condition">{condition.type}</td>
									<td>
										<Badge tone={conditionTone(each)}>{stateName(condition.state)}</Badge>
										{!isCurrent && (
											<>
												{" "}
												<Badge tone="unsure">stale: of an older generation</Badge>
											</>
										)}
									</td>
									<td>{condition.reason}</td>
									<td className="wraps">{condition.message}</td>
									<td className="muted">{reporter}</td>
									<td className="muted">
										<Age ms={updatedMs} suffix=" ago" />
									</td>
								</tr>
							);
						})}
					</tbody>
				</table>
			</div>
		</Card>
	);
}
