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
import { isPlanted } from "../fault-points.ts";
import type { Establishment, ForeignReference } from "../protocol/establish-references.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import { type KeyLike, keyString } from "./resource-key.ts";
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

/** A reference as it is to be recorded, and what is left to be done for it. */
export interface PlannedRecord {
	readonly reference: OutgoingReference;
	/** In place of earlier confirmations of the target. */
	readonly task?: Task;
}

/**
 * A reference whose target is missing, according to the target's deployment. Then nothing is left to confirm there: the
 * target was lost with its deployment's storage.
 */
export function recordMissing(missing: OutgoingReference): PlannedRecord {
	const { target } = missing;
	return { reference: missing, ...(target && { task: resolveTask(target) }) };
}

/** A reference that stays recorded as it was: its target existed, and is not looked up again. */
export function recordHeld(
	{ path, target, rule }: ForeignReference,
	{ targetUid, deploymentUid }: OutgoingReference,
): PlannedRecord {
	return {
		reference: create(OutgoingReferenceSchema, { path, target, targetUid, rule, deploymentUid }),
	};
}

/** An established reference, and the task to confirm it. */
export function recordEstablished(
	{ path, target, rule }: ForeignReference,
	{ uid, number, deployment }: Establishment,
): PlannedRecord {
	const reference = create(OutgoingReferenceSchema, {
		path,
		target,
		targetUid: uid,
		rule,
		deploymentUid: deployment.uid,
	});
	const task = create(TaskSchema, {
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
	return { reference, task };
}

/**
 * The shadow with more references. Each target has at most one task to confirm it.
 *
 * @param isConfirmed - whether the references get tasks to confirm them. If not, their targets have none afterwards.
 */
export function withRecords(
	shadow: Shadow,
	records: readonly PlannedRecord[],
	isConfirmed: boolean,
): Shadow {
	const tasks = new Map<string | Task, Task>(
		shadow.tasks.map((task) => [confirmedTarget(task) ?? task, task]),
	);
	for (const { reference, task } of records) {
		if (task !== undefined) {
			tasks.delete(textOf(reference.target));
			if (isConfirmed || task.task.case !== "confirm") {
				tasks.set(confirmedTarget(task) ?? task, task);
			}
		}
	}
	return {
		...shadow,
		outgoing: [...shadow.outgoing, ...records.map(({ reference }) => reference)],
		tasks: [...tasks.values()],
	};
}

/** The target that a task confirms. */
function confirmedTarget({ task }: Task): string | undefined {
	return task.case === "confirm" ? textOf(task.value.target) : undefined;
}

function textOf(target: KeyLike | undefined): string {
	return target === undefined ? "" : keyString(target);
}

/** The task to look up a target again. */
export function resolveTask(target: ResourceKey): Task {
	return create(TaskSchema, { task: { case: "resolve", value: { target } } });
}

/** What identifies the record of a reference in a shadow. */
export interface RecordedReference {
	readonly target: KeyLike;
	readonly rule: OnDelete;
	/** The type that the reference names, if its field may not reference that type. */
	readonly wrongType?: string | undefined;
	/** The field. Of several records, that of this field is preferred. */
	readonly path?: string | undefined;
}

/** The records of a target, or of a target and a rule. */
interface Records {
	/** With a uid: the target exists. */
	readonly established: OutgoingReference[];
	/** Without a uid. */
	readonly missing: OutgoingReference[];
}

/**
 * The references that a shadow records, by target, and by target and rule: a resource may have thousands, each of which is
 * looked up when it is written.
 */
export class RecordedReferences {
	readonly #byTarget = new Map<string, Records>();
	readonly #byReference = new Map<string, Records>();
	readonly #outgoing: readonly OutgoingReference[];

	constructor(outgoing: readonly OutgoingReference[]) {
		this.#outgoing = outgoing;
		for (const each of outgoing) {
			if (each.target !== undefined) {
				const target = keyString(each.target);
				addRecord(this.#byTarget, target, each);
				addRecord(this.#byReference, `${target} ${each.rule}`, each);
			}
		}
	}

	/** The references to a target, by whatever rule, that have a uid. */
	allTo(target: KeyLike): readonly OutgoingReference[] {
		return this.#byTarget.get(keyString(target))?.established ?? [];
	}

	/**
	 * The record of a target that is missing, by whatever rule, of the field itself: what another field has lost, and what
	 * operators have decided about that, says nothing of this one.
	 */
	lost({
		target,
		path,
	}: Pick<RecordedReference, "target" | "path">): OutgoingReference | undefined {
		const all = this.#byTarget.get(keyString(target))?.missing ?? [];
		if (isPlanted("forget what was lost when a rule changes")) {
			return undefined;
		}
		const own = all.find((each) => each.path === path);
		return own ?? (isPlanted("take what another field has lost") ? all[0] : undefined);
	}

	/** Whether a field references this incarnation of its target already, by whatever rule. */
	holds(
		{ path, target }: { readonly path: string; readonly target: KeyLike },
		uid: string,
	): boolean {
		return this.#outgoing.some(
			(each) => each.path === path && each.targetUid === uid && sameTarget(each.target, target),
		);
	}

	/**
	 * The record of a reference, perhaps of another field. A reference to a wrong type never has a target, but may have the
	 * same name and rule as one that has.
	 */
	of({ target, rule, wrongType, path }: RecordedReference): OutgoingReference | undefined {
		const records = this.#byReference.get(`${keyString(target)} ${rule}`);
		const established = wrongType === undefined ? (records?.established ?? []) : [];
		const all = established.length > 0 ? established : (records?.missing ?? []);
		return all.find((each) => each.path === path) ?? all[0];
	}
}

function addRecord(records: Map<string, Records>, key: string, each: OutgoingReference): void {
	const known = records.get(key) ?? { established: [], missing: [] };
	records.set(key, known);
	known[each.targetUid === "" ? "missing" : "established"].push(each);
}
