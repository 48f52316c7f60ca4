import type { Resource } from "@plinth/proto";
import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { locateReferences } from "../schema/locate-references.ts";
import { keyString } from "../shadow/resource-key.ts";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import {
	type TrackedReference,
	type TrackedResource,
	unresolved,
} from "./tracked-resources.fixture.ts";

/** The references of a resource. Existing ones keep their incarnations; new ones are resolved later. */
export function referencesOf(
	{ environment }: SimulatedDeployment,
	{ descriptor }: SimulatedSchema,
	stored: Resource,
	before: TrackedResource | undefined,
): readonly TrackedReference[] {
	const locate = (resource: Resource) =>
		locateReferences({ descriptor, environment }, resource).map(({ path, target, rule }) => {
			return { path, target, text: keyString(target), rule, uid: "" };
		});
	const references = locate(stored);
	const named = before === undefined ? [] : locate(before.resource);
	return references.map((held) => {
		const known = before && heldBefore(held, before.references, references, named);
		return known?.rule === held.rule ? { ...known, path: held.path } : held;
	});
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
	const all = referencesOf(deployment, schema, resource, tracked);
	const references = all.map((held) => {
		const earlier = isResolved(held) ? undefined : heldBefore(held, before, all, all);
		if (earlier === undefined) {
			return held;
		}
		const { uid, isSuspended } = earlier;
		return { ...held, uid, ...(isSuspended && { isSuspended }) };
	});
	return { ...tracked, schema, references };
}

/**
 * What a reference was before, perhaps by another rule: that of its field. A field that a schema has made takes that of a field
 * which is none any longer, as if it were renamed. Otherwise it takes that of another one with its rule. One that has the target
 * comes first.
 *
 * @param references - those of the resource by the schema of `held`.
 * @param named - the same before the write.
 */
export function heldBefore(
	{ path, text, rule }: TrackedReference,
	before: readonly TrackedReference[],
	references: readonly TrackedReference[],
	named: readonly TrackedReference[],
): TrackedReference | undefined {
	const sameTarget = before.filter((each) => each.text === text);
	const own = sameTarget.find((each) => each.path === path);
	if (own !== undefined) {
		return own;
	}
	const isMade = named.some((each) => each.text === text && each.path === path);
	const fields = [...references, ...named].filter((each) => each.text === text);
	const left = isMade
		? sameTarget.filter((each) => fields.every((field) => field.path !== each.path))
		: [];
	const same = fields.flatMap((field) =>
		field.rule === rule ? (sameTarget.find((each) => each.path === field.path) ?? []) : [],
	);
	return firstOf(left.filter((each) => each.rule === rule)) ?? firstOf(left) ?? firstOf(same);
}

function firstOf(references: readonly TrackedReference[]): TrackedReference | undefined {
	return references.find(isResolved) ?? references[0];
}

/** Whether it is known which incarnation a reference has. */
export function isResolved({ uid }: TrackedReference): boolean {
	return uid !== "" && uid !== unresolved;
}

/** The record of a reference in a shadow, whatever its incarnation. */
export function recordIn(
	outgoing: readonly OutgoingReference[],
	held: TrackedReference,
): OutgoingReference | undefined {
	return outgoing.find((each) => isOf(each, held));
}

/** Whether the record of a shadow is that of a reference, whatever its incarnation. */
export function isOf({ path, target, rule }: OutgoingReference, held: TrackedReference): boolean {
	return (
		target !== undefined &&
		path === held.path &&
		rule === held.rule &&
		keyString(target) === held.text
	);
}
