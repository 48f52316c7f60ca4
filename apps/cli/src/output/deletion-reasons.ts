import { conditionsOf, reasonOf, referencesFinalizer } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { finalizersOf } from "@plinth/resource";

/** What the status of a resource says about its deletion. */
export function reportedReasonsOf(left: Resource): readonly string[] {
	const released = conditionsOf(left).find(
		({ condition: { type } }) => type === "ReferencesReleased",
	);
	return finalizersOf(left).map((finalizer) =>
		finalizer === referencesFinalizer && released?.condition.message
			? released.condition.message
			: reasonOf(finalizer),
	);
}
