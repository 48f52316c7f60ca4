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
	const all = before === undefined ? [] : [...references, ...locate(before.resource)];
	return references.map((held) => {
		const known = before && knownAs(held, before.references, all);
		return known === undefined ? held : { ...known, path: held.path };
	});
}

/**
 * The reference that one was before: that with its rule, perhaps of another field. What its own field has lost is not found
 * again in another one whose rule it has now, if that has another rule by now.
 */
function knownAs(
	{ path, text, rule }: TrackedReference,
	before: readonly TrackedReference[],
	all: readonly TrackedReference[],
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
	const hasLost = sameTarget.some((each) => each.path === path && each.uid === unresolved);
	const isOfOther = all.some(
		(each) => each.text === text && each.path === known.path && each.rule !== rule,
	);
	return hasLost && isOfOther ? undefined : known;
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
		// Another field may have lost its target by the rule that the field of this one has now, and that holds its own.
		const earlier = isResolved(held) ? undefined : heldBefore(held, before, all);
		if (earlier === undefined) {
			return held;
		}
		const { uid, isSuspended } = earlier;
		return { ...held, uid, ...(isSuspended && { isSuspended }) };
	});
	return { ...tracked, schema, references };
}

/**
 * The reference by an earlier schema whose incarnation one has now: that of its field, or one that is left to it, as no
 * other reference has its rule or its field. If there is neither, that of its field without a target.
 *
 * @param all - the references of the resource by the schema of `held`.
 */
export function heldBefore(
	{ path, text, rule }: TrackedReference,
	before: readonly TrackedReference[],
	all: readonly TrackedReference[],
): TrackedReference | undefined {
	const sameTarget = before.filter((each) => each.text === text);
	const isOfOther = (earlier: TrackedReference) =>
		all.some(
			(each) =>
				each.text === text &&
				(each.rule === earlier.rule || (each.path === earlier.path && each.rule !== rule)),
		);
	const own = sameTarget.find((each) => each.path === path);
	return own !== undefined && isResolved(own)
		? own
		: (sameTarget.find((each) => isResolved(each) && !isOfOther(each)) ?? own);
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
