import type { Resource } from "@plinth/proto";
import type { OutgoingReference, Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { locate, locateReferences, nameOfLocated } from "../schema/locate-references.ts";
import type { DeclaredReference } from "../schema/service-descriptor.ts";
import { RecordedReferences } from "../shadow/recorded-references.ts";
import { HeldReferences } from "./held-references.ts";

/**
 * Which record of its shadow a field of a resource has, by the active schema. Several fields may name one target: those
 * with one rule have one record, unless one of them has lost a target that another one holds by the rule of an earlier
 * schema.
 *
 * @param resource - as it was read, before its shadow.
 * @returns the record of a field, the object in `shadow.outgoing`; `undefined` if nothing is recorded of it.
 */
export function recordsOfFields(
	context: ConstraintContext,
	resource: Resource,
	shadow: Shadow,
): (field: DeclaredReference) => OutgoingReference | undefined {
	const recorded = new RecordedReferences(shadow.outgoing);
	const located = locateReferences(context, resource);
	const held = new HeldReferences(recorded, () => located);
	const records = new Map(
		located.map((each) => [nameOfLocated(each), held.recordOf(each) ?? recorded.lost(each)]),
	);
	return (field) => records.get(nameOfLocated(locate(context, field)));
}
