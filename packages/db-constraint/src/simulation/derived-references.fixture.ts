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
 * What a reference was before, perhaps by another rule: that of its field. A field that had no such reference takes that of
 * another one with its rule, before and now, if that has the target, or if the write moves what it has lost.
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
	const isAmong = (each: TrackedReference, all: readonly TrackedReference[]) =>
		all.some((other) => other.text === text && other.path === each.path);
	const sameTarget = before.filter((each) => each.text === text);
	const own = sameTarget.find((each) => each.path === path);
	if (own !== undefined) {
		return own;
	}
	const hasRule = (each: TrackedReference) =>
		each.rule === rule && named.some((other) => other.rule === rule && isAmong(each, [other]));
	const same = sameTarget.filter(hasRule);
	const isAdded = named.every((each) => each.text !== text || each.path !== path);
	return same.find(isResolved) ?? same.find((each) => isAdded && !isAmong(each, references));
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
