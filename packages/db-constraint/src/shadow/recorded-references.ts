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
import { isPlanted } from "../fault-points.ts";
import type { Establishment } from "../protocol/establish-references.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import { fieldOfPath } from "./field-of-path.ts";
import { type FieldAndTarget, nameOfField, nameOfRecord, targetOf } from "./recorded-reference.ts";
import { deployedOf } from "./shadow.ts";

/**
 * The record of a reference without a target. One that was recorded as such before stays as it is, with the incarnation
 * that was lost and the decision of operators to keep it.
 *
 * @param known - the record of the reference so far.
 * @param deploymentUid - the deployment that has said that the target is missing, if it is another one.
 */
export function missingReference(
	{ path, field, target, rule, wrongType = "" }: PlannedReference,
	known: OutgoingReference | undefined,
	clock: Clock,
	deploymentUid = "",
): OutgoingReference {
	const missing = known?.missing ?? {
		uid: known?.targetUid ?? "",
		deploymentUid,
		since: timestampFromMs(clock.now()),
	};
	return create(OutgoingReferenceSchema, {
		...{ path, field, target, rule },
		missing: { ...missing, wrongType },
	});
}

/** The record of a reference that has its target. */
export function recordOf(
	{ path, field, target, rule }: PlannedReference,
	{ targetUid, deploymentUid }: Pick<OutgoingReference, "targetUid" | "deploymentUid">,
): OutgoingReference {
	return create(OutgoingReferenceSchema, { path, field, target, rule, targetUid, deploymentUid });
}

/** What a record says of a reference, whether that has a target or not. */
export type PlannedReference = Pick<
	LocatedReference,
	"path" | "field" | "target" | "rule" | "wrongType"
>;

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
export function recordHeld(reference: PlannedReference, held: OutgoingReference): PlannedRecord {
	return { reference: recordOf(reference, held) };
}

/** An established reference, and the task to confirm it. */
export function recordEstablished(
	planned: PlannedReference,
	{ uid, number, deployment }: Establishment,
): PlannedRecord {
	const { target } = planned;
	const reference = recordOf(planned, { targetUid: uid, deploymentUid: deployment.uid });
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

/** The task to look up a target again. */
export function resolveTask(target: ResourceKey): Task {
	return create(TaskSchema, { task: { case: "resolve", value: { target } } });
}

/** The references that a shadow records: a resource may have thousands, each of which is looked up when it is written. */
export class RecordedReferences {
	readonly #byName: ReadonlyMap<string, OutgoingReference>;
	/**
	 * Records of servers before revision 4, by target: they know neither the numbers of fields nor wrong types. There is one for
	 * all fields with its target and rule, and perhaps another one for those that name the target in a wrong type.
	 */
	readonly #older: ReadonlyMap<string, readonly OutgoingReference[]>;

	constructor(outgoing: readonly OutgoingReference[]) {
		const numbered = outgoing.filter(({ field }) => field !== "");
		this.#byName = new Map(numbered.map((each) => [nameOfRecord(each), each]));
		const older = outgoing.filter(({ field }) => field === "");
		this.#older = Map.groupBy(older, targetOf);
	}

	/** The record of a reference, by whatever rule. */
	of(reference: FieldAndTarget): OutgoingReference | undefined {
		return this.#byName.get(nameOfField(reference));
	}

	/** The record that a server before revision 4 has written for a reference: of its field, by whatever rule, or of its rule. */
	olderOf(reference: PlannedReference): OutgoingReference | undefined {
		const { path, rule, wrongType } = reference;
		const older = this.#older.get(targetOf(reference));
		if (older === undefined) {
			return undefined;
		}
		const isMissing = ({ targetUid }: OutgoingReference) => targetUid === "";
		const ofField = older.filter((each) => fieldOfPath(each.path) === fieldOfPath(path));
		if (wrongType !== undefined) {
			return ofField.find(isMissing);
		}
		if (
			ofField.length === 0 &&
			!isPlanted("forget what older servers have recorded for several fields")
		) {
			ofField.push(...older.filter((each) => each.rule === rule));
		}
		return ofField.find((each) => !isMissing(each)) ?? ofField[0];
	}
}
