import type { Resource } from "@plinth/proto";
import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { asReferences, type LocatedReference, locateFields } from "../schema/locate-references.ts";
import { keyString } from "../shadow/resource-key.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

/** A field that references a target by a schema. */
export type ReferenceField = Pick<TrackedReference, "path" | "text" | "rule">;

/** The fields of a resource that reference something by a schema: several with one target and rule are one reference. */
export function fieldsOf(
	{ environment }: SimulatedDeployment,
	{ descriptor }: SimulatedSchema,
	resource: Resource,
): readonly ReferenceField[] {
	return locateFields({ descriptor, environment }, resource).map(fieldOf);
}

function fieldOf({ path, target, rule }: LocatedReference): ReferenceField {
	return { path, text: keyString(target), rule };
}

/** The references of a resource. Existing ones keep their incarnations; new ones are resolved later. */
export function referencesOf(
	{ environment }: SimulatedDeployment,
	{ descriptor }: SimulatedSchema,
	stored: Resource,
	before: TrackedResource | undefined,
): readonly TrackedReference[] {
	const located = (resource: Resource) => locateFields({ descriptor, environment }, resource);
	const fields = located(stored);
	const all = before === undefined ? [] : [...fields, ...located(before.resource)].map(fieldOf);
	return asReferences(fields).map((each) => {
		const { path, target } = each;
		const field = fieldOf(each);
		const known = before && knownAs(field, before.references, all);
		return known === undefined ? { ...field, target, uid: "" } : { ...known, path };
	});
}

/**
 * The reference that one was before: that with its rule, perhaps of another field. If that has another rule by now, then what
 * the field holds or has lost itself counts.
 */
function knownAs(
	{ path, text, rule }: ReferenceField,
	before: readonly TrackedReference[],
	all: readonly ReferenceField[],
): TrackedReference | undefined {
	const sameTarget = before.filter((each) => each.text === text);
	const ofRule = sameTarget.filter((each) => each.rule === rule);
	const known =
		ofRule.find((each) => each.path === path && isResolved(each)) ??
		ofRule.find(isResolved) ??
		ofRule.find((each) => each.path === path) ??
		ofRule[0];
	if (known === undefined || known.path === path || !isResolved(known)) {
		return known;
	}
	const fields = all.filter((each) => each.text === text && each.path === known.path);
	if (fields.some((each) => each.rule === rule)) {
		return known;
	}
	const own = sameTarget.find((each) => each.path === path && isResolved(each));
	if (own !== undefined) {
		return own.uid === known.uid ? known : undefined;
	}
	const hasLost = sameTarget.some((each) => each.path === path && each.uid === unresolved);
	return hasLost && fields.length > 0 ? undefined : known;
}

/**
 * The resource with its references by another schema, with the incarnations that they had before.
 *
 * @param schema - the same resource is returned if there is none.
 */
export function derivedBy(
	tracked: TrackedResource,
	schema: SimulatedSchema | undefined,
): TrackedResource {
	if (schema === undefined || tracked.schema === schema) {
		return tracked;
	}
	const { deployment, resource, references: before } = tracked;
	const fields = fieldsOf(deployment, schema, resource);
	const references = referencesOf(deployment, schema, resource, tracked).map((held) => {
		// Another field may have lost its target by the rule that the field of this one has now, and that holds its own.
		const earlier = isResolved(held) ? undefined : heldBefore(held, before, fields);
		if (earlier === undefined) {
			return held;
		}
		const { uid, isSuspended } = earlier;
		return { ...held, uid, ...(isSuspended && { isSuspended }) };
	});
	return { ...tracked, schema, references };
}

/**
 * The reference by an earlier schema whose incarnation one has now: that of one of its fields, or one that is left to it, as
 * no other reference has its rule or its field. If there is none, that of its field without a target.
 *
 * @param all - the fields of the resource by the schema of `held`.
 */
export function heldBefore(
	{ path, text, rule }: ReferenceField,
	before: readonly TrackedReference[],
	all: readonly ReferenceField[],
): TrackedReference | undefined {
	const sameTarget = before.filter((each) => each.text === text);
	const resolved = sameTarget.filter(isResolved);
	const fields = all.filter((each) => each.text === text);
	const isOwn = (earlier: TrackedReference) =>
		fields.some((each) => each.path === earlier.path && each.rule === rule);
	const isOfOther = (earlier: TrackedReference) =>
		fields.some(
			(each) => each.rule === earlier.rule || (each.path === earlier.path && each.rule !== rule),
		);
	return (
		resolved.find((each) => each.path === path) ??
		resolved.find(isOwn) ??
		resolved.find((each) => !isOfOther(each)) ??
		sameTarget.find((each) => each.path === path)
	);
}

/** Whether it is known which incarnation a reference has. */
export function isResolved({ uid }: TrackedReference): boolean {
	return uid !== "" && uid !== unresolved;
}

/** The record of a reference: another field may have lost the same target, by the same rule. */
export function recordIn(
	outgoing: readonly OutgoingReference[],
	held: TrackedReference,
): OutgoingReference | undefined {
	const all = outgoing.filter((each) => isOf(each, held));
	const ofUid = all.find(({ targetUid }) => isResolved(held) && targetUid === held.uid);
	return ofUid ?? all.find(({ path }) => path === held.path) ?? all[0];
}

/** Whether the record of a shadow is that of a reference, whatever its incarnation. */
export function isOf({ target, rule }: OutgoingReference, held: TrackedReference): boolean {
	return target !== undefined && rule === held.rule && keyString(target) === held.text;
}
