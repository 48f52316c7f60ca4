import { conditionsOf, stateName } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { conditionTone } from "../model/conditions.ts";
import { Badge } from "../parts/badge.tsx";

/** So many conditions are named. */
const mostNamed = 3;

/** The conditions of a resource that do not hold, or are not sure, beside its name; those that fail first. */
export function ConditionBadges({ resource }: { readonly resource: Resource }) {
	const all = conditionsOf(resource).map((each) => ({ ...each, tone: conditionTone(each) }));
	const shown = ["bad", "unsure"].flatMap((tone) => all.filter((each) => each.tone === tone));
	return (
		<>
			{shown.slice(0, mostNamed).map(({ reporter, condition, isCurrent, tone }) => (
				<Badge key={`${reporter}/${condition.type}`} tone={tone}>
					{condition.type}={stateName(condition.state)}
					{!isCurrent && ", stale"}
				</Badge>
			))}
			{shown.length > mostNamed && (
				<span className="muted">{shown.length - mostNamed} more conditions</span>
			)}
		</>
	);
}
