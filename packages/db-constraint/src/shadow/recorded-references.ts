import { create } from "@bufbuild/protobuf";
import {
	type OutgoingReference,
	OutgoingReferenceSchema,
	type ResourceKey,
	type Shadow,
	type Task,
	TaskSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Establishment, ForeignReference } from "../protocol/establish-references.ts";
import type { KeyLike } from "./resource-key.ts";
import { deployedOf, sameTarget } from "./shadow.ts";

/**
 * The shadow with a reference whose target is missing, according to the target's deployment. Then nothing is left to
 * confirm there: the target was lost with its deployment's storage.
 *
 * @param held - an existing reference to the target. Then the target existed, and is not looked up again.
 */
export function withMissing(
	shadow: Shadow,
	{ path, target, rule }: ForeignReference,
	held: OutgoingReference | undefined,
): Shadow {
	const { targetUid = "", deploymentUid = "" } = held ?? {};
	const init = { path, target, targetUid, rule, deploymentUid };
	return {
		...shadow,
		outgoing: [...shadow.outgoing, create(OutgoingReferenceSchema, init)],
		tasks:
			held === undefined
				? [...withoutConfirmations(shadow.tasks, target), resolveTask(target)]
				: shadow.tasks,
	};
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
