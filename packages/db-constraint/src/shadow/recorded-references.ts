import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
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
import { fieldOfPath } from "./field-of-path.ts";
import { type KeyLike, keyString } from "./resource-key.ts";
import { deployedOf } from "./shadow.ts";

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
 * The shadow with more references. Each target has at most one task to confirm it, and one to look it up.
 *
 * @param isConfirmed - whether the references get tasks to confirm them. If not, their targets have none afterwards.
 */
export function withRecords(
	shadow: Shadow,
	records: readonly PlannedRecord[],
	isConfirmed: boolean,
): Shadow {
	const tasks = new Map(shadow.tasks.map((task) => [nameOfTask(task), task]));
	const isMissing = ({ reference }: PlannedRecord) => reference.targetUid === "";
	for (const { reference, task } of records.filter(isMissing)) {
		tasks.delete(`confirm ${targetOf(reference)}`);
		if (task !== undefined) {
			tasks.set(nameOfTask(task), task);
		}
	}
	// Another field may hold a target that one has lost.
	for (const { task } of records.filter((each) => !isMissing(each))) {
		if (task !== undefined) {
			tasks.delete(nameOfTask(task));
			if (isConfirmed) {
				tasks.set(nameOfTask(task), task);
			}
		}
	}
	return {
		...shadow,
		outgoing: [...shadow.outgoing, ...records.map(({ reference }) => reference)],
		tasks: [...tasks.values()],
	};
}

/** What distinguishes the tasks of a shadow: each target has at most one of each kind. */
export function nameOfTask({ task }: Task): string {
	const target = task.case === "confirm" || task.case === "resolve" ? task.value : {};
	return `${task.case} ${targetOf(target)}`;
}

/** The target of a reference, as `keyString`; empty if it has none. */
export function targetOf({ target }: { readonly target?: KeyLike | undefined }): string {
	return target === undefined ? "" : keyString(target);
}

/** The task to look up a target again. */
export function resolveTask(target: ResourceKey): Task {
	return create(TaskSchema, { task: { case: "resolve", value: { target } } });
}

/** The records of one field and one target. */
export interface FieldRecords {
	/** With a uid: the target exists. */
	readonly established?: OutgoingReference | undefined;
	/** Without a uid. A field has both if one of its elements names a wrong type. */
	readonly missing?: OutgoingReference | undefined;
}

/**
 * The references that a shadow records, by target: a resource may have thousands, each of which is looked up when it is
 * written.
 */
export class RecordedReferences {
	readonly #byTarget: ReadonlyMap<string, readonly OutgoingReference[]>;
	/** By target and field. */
	readonly #byField = new Map<string, MutableFieldRecords>();

	constructor(outgoing: readonly OutgoingReference[]) {
		this.#byTarget = Map.groupBy(outgoing, targetOf);
		for (const each of outgoing) {
			const name = `${targetOf(each)} ${fieldOfPath(each.path)}`;
			const records = this.#byField.get(name) ?? {};
			this.#byField.set(name, records);
			records[each.targetUid === "" ? "missing" : "established"] ??= each;
		}
	}

	/** The records of a target, of all fields. */
	allTo(target: KeyLike): readonly OutgoingReference[] {
		return this.#byTarget.get(keyString(target)) ?? [];
	}

	/** The records of a target in one field, by whatever rule. */
	inField({ path, target }: { readonly path: string; readonly target: KeyLike }): FieldRecords {
		return this.#byField.get(`${keyString(target)} ${fieldOfPath(path)}`) ?? {};
	}
}

type MutableFieldRecords = { -readonly [key in keyof FieldRecords]: FieldRecords[key] };
