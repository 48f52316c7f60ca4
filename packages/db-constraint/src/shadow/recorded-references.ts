import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type OutgoingReference,
	OutgoingReferenceSchema,
	type ResourceKey,
	type Shadow,
	type Task,
	TaskSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import type { Establishment, ForeignReference } from "../protocol/establish-references.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import type { KeyLike } from "./resource-key.ts";
import { deployedOf, sameTarget } from "./shadow.ts";

/**
 * The record of a reference without a target. One that was recorded as such before stays as it is, with the incarnation
 * that was lost and the decision of operators to keep it.
 *
 * @param known - the record of the reference so far.
 * @param deploymentUid - the deployment that has said that the target is missing, if it is another one.
 */
export function missingReference(
	{ path, target, rule }: Pick<LocatedReference, "path" | "target" | "rule">,
	known: OutgoingReference | undefined,
	clock: Clock,
	deploymentUid = "",
): OutgoingReference {
	const missing = known?.missing ?? {
		uid: known?.targetUid ?? "",
		deploymentUid,
		since: timestampFromMs(clock.now()),
	};
	return create(OutgoingReferenceSchema, { path, target, rule, missing });
}

/**
 * The shadow with a reference whose target is missing, according to the target's deployment. Then nothing is left to
 * confirm there: the target was lost with its deployment's storage.
 */
export function withMissing(shadow: Shadow, missing: OutgoingReference): Shadow {
	const { target } = missing;
	const tasks = withoutConfirmations(shadow.tasks, target);
	return {
		...shadow,
		outgoing: [...shadow.outgoing, missing],
		tasks: target === undefined ? tasks : [...tasks, resolveTask(target)],
	};
}

/** The shadow with a reference that stays recorded as it was: its target existed, and is not looked up again. */
export function withHeld(
	shadow: Shadow,
	{ path, target, rule }: ForeignReference,
	{ targetUid, deploymentUid }: OutgoingReference,
): Shadow {
	const held = create(OutgoingReferenceSchema, { path, target, targetUid, rule, deploymentUid });
	return { ...shadow, outgoing: [...shadow.outgoing, held] };
}

/** The shadow with an established reference and the task to confirm it. */
export function withEstablished(
	shadow: Shadow,
	{ path, target, rule }: ForeignReference,
	{ uid, number, deployment }: Establishment,
): Shadow {
	const reference = create(OutgoingReferenceSchema, {
		path,
		target,
		targetUid: uid,
		rule,
		deploymentUid: deployment.uid,
	});
	const confirm = create(TaskSchema, {
		task: {
			case: "confirm",
			value: {
				target,
				targetUid: uid,
				deployment: deployedOf(deployment),
				establishment: number,
			},
		},
	});
	return {
		...shadow,
		outgoing: [...shadow.outgoing, reference],
		tasks: [...withoutConfirmations(shadow.tasks, target), confirm],
	};
}

/** The tasks, except those to confirm references to the target. */
function withoutConfirmations(tasks: readonly Task[], target: KeyLike | undefined): Task[] {
	return tasks.filter(
		({ task }) => task.case !== "confirm" || !sameTarget(task.value.target, target),
	);
}

/** The task to look up a target again. */
export function resolveTask(target: ResourceKey): Task {
	return create(TaskSchema, { task: { case: "resolve", value: { target } } });
}

/** The reference of a shadow to a target, if it has a uid. */
export function referenceTo(
	from: Shadow | undefined,
	target: KeyLike,
): OutgoingReference | undefined {
	return from?.outgoing.find((each) => each.targetUid !== "" && sameTarget(each.target, target));
}

/** What identifies the record of a reference in a shadow. */
export interface RecordedReference {
	readonly target: KeyLike;
	readonly rule: OnDelete;
	/** The type that the reference names, if its field may not reference that type. */
	readonly wrongType?: string | undefined;
}

/**
 * The record of a reference in a shadow. A reference to a wrong type never has a target, but may have the
 * same name and rule as one that has.
 */
export function recordOf(
	from: Shadow,
	{ target, rule, wrongType }: RecordedReference,
): OutgoingReference | undefined {
	const same = from.outgoing.filter(
		(other) => other.rule === rule && sameTarget(other.target, target),
	);
	const missing = same.find(({ targetUid }) => targetUid === "");
	return wrongType === undefined
		? (same.find(({ targetUid }) => targetUid !== "") ?? missing)
		: missing;
}
