import type { Resource } from "@plinth/proto";
import { finalizersOf } from "@plinth/resource";
import { conditionsOf } from "./conditions.ts";

/** What the status of a resource says about its deletion. */
export function reportedReasonsOf(left: Resource): readonly string[] {
	const released = conditionsOf(left).find(
		({ condition: { type } }) => type === "ReferencesReleased",
	);
	return finalizersOf(left).map((finalizer) =>
		finalizer === references && released?.condition.message
			? released.condition.message
			: (ofServer[finalizer] ?? finalizer),
	);
}

/** The finalizer of a resource that others may reference. */
export const references = "schema.plinth.dev/references";

/** What a deletion waits for while it has a finalizer that the server removes by itself. */
export const ofServer: Readonly<Record<string, string>> = {
	[references]: "the resources that reference it",
	"tenancy.plinth.dev/contents": "its contents to be deleted",
};
