import type { Resource } from "@plinth/proto";
import type { OutgoingReference, Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { locate, locateReferences, nameOfLocated } from "../schema/locate-references.ts";
import type { DeclaredReference } from "../schema/service-descriptor.ts";
import { targetOf } from "../shadow/recorded-reference.ts";
import { RecordedReferences } from "../shadow/recorded-references.ts";
import { HeldReferences } from "./held-references.ts";

/**
 * Which of some records of its shadow a field of a resource has, by the active schema. Other fields may name the same target,
 * and have records of their own.
 *
 * @param resource - as it was read, before its shadow.
 * @param records - objects in `shadow.outgoing`.
 * @returns the record of a field, one of these objects; `undefined` if it has none of them.
 */
export function recordsOfFields(
	context: ConstraintContext,
	resource: Resource,
	shadow: Shadow,
	records: Iterable<OutgoingReference>,
): (field: DeclaredReference) => OutgoingReference | undefined {
	const wanted = new Set(records);
	// The others of thousands say nothing of these.
	const targets = new Set([...wanted].map(targetOf));
	const hasTarget = (each: Pick<OutgoingReference, "target">) => targets.has(targetOf(each));
	const recorded = new RecordedReferences(shadow.outgoing.filter(hasTarget));
	const references = locateReferences(context, resource).filter(hasTarget);
	const held = new HeldReferences(recorded, references);
	const found = new Map(
		references.map((each) => [nameOfLocated(each), held.recordOf(each) ?? held.lostOf(each)]),
	);
	return (field) => {
		const record = found.get(nameOfLocated(locate(context, field)));
		return record !== undefined && wanted.has(record) ? record : undefined;
	};
}
