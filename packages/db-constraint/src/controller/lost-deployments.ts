/**
 * Handles references to deployments that were deleted:
 *
 *     not in the registry view ──read the permanent record──┬─ absent, or not known ─▶ nothing
 *                                                     └─ deleted ──┬─ UNSET ─▶ cleared
 *                                                                  └─ BLOCK, CASCADE ─▶ reported, kept
 *
 * Absence from the registry view is only a reason to read the record. A deployment with a successor is not lost:
 * references to it are re-established with the successor, possibly while the record is read. Tasks for a deleted
 * deployment are dropped.
 */
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	Lifecycle,
	type OutgoingReference,
	type Task,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { StorageBackend } from "@plinth/storage";
import { clearReferences } from "../commit/clear-references.ts";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { readShadow, recordId, type StoredShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { responsibleUid } from "../succession/successors.ts";
import { afterConflict, done, type HandlerResult, soonest } from "./handler-result.ts";
import { condition, displayReferences, targetsKept, withCondition } from "./reported-status.ts";

/** See the comment at the top of this file. */
export class LostDeployments {
	readonly #context: ConstraintContext;
	readonly #store: StorageBackend;

	constructor(context: ConstraintContext, store: StorageBackend) {
		this.#context = context;
		this.#store = store;
	}

	/** One pass over a shadow. */
	async check(stored: StoredShadow): Promise<HandlerResult> {
		const absent = this.#absent(stored);
		if (absent.length === 0) {
			return done;
		}
		const { environment, limits } = this.#context;
		const lost = new Set<string>();
		let isKnown = true;
		for (const uid of absent) {
			try {
				if (await environment.isDeleted(uid)) {
					lost.add(uid);
				}
			} catch {
				isKnown = false;
			}
		}
		let handled = done;
		if (lost.size > 0) {
			await this.#dropTasks(stored.name, lost);
			handled = await this.#handleLost(stored, lost);
		}
		return isKnown && lost.size === absent.length
			? handled
			: soonest(handled, { requeueAfterMs: limits.resolveRetryMs });
	}

	/** The deployments that the shadow needs and that are missing from the registry view. */
	#absent({ shadow }: StoredShadow): readonly string[] {
		const { environment } = this.#context;
		const needed = [
			...shadow.outgoing.map(({ deploymentUid }) => deploymentUid),
			...shadow.tasks.map(deploymentOf),
		];
		return [...new Set(needed)].filter(
			(uid) =>
				uid !== "" &&
				environment.byUid(uid) === undefined &&
				responsibleUid(environment, uid) === uid,
		);
	}

	/** The uid of a deleted deployment is never used again: nobody waits for these. */
	async #dropTasks(name: string, deleted: ReadonlySet<string>): Promise<void> {
		await updateShadow(this.#context, name, ({ shadow }) => {
			if (
				shadow.lifecycle === Lifecycle.CHECKING &&
				!isPlanted("drop tasks while a deletion is being checked")
			) {
				// The deletion needs the shadow unchanged. Its next change triggers another pass.
				return undefined;
			}
			const tasks = shadow.tasks.filter((task) => !deleted.has(deploymentOf(task)));
			return tasks.length === shadow.tasks.length ? undefined : { ...shadow, tasks };
		});
	}

	/**
	 * Acts on the references as they are now. Reading the records of deletions takes seconds: meanwhile the references may
	 * have been established with a successor, by this server or another one, or a user may have written others. So the
	 * shadow is read again, after the resource, whose references it then has if both stay as they were read: the commit
	 * asserts both.
	 */
	async #handleLost(
		{ name, shadow: before }: StoredShadow,
		deleted: ReadonlySet<string>,
	): Promise<HandlerResult> {
		const { backend, limits } = this.#context;
		const resource = before.resource && (await backend.lookup(nameOfKey(before.resource)));
		const stored = await readShadow(backend, name);
		if (resource === undefined || stored === undefined || resource.id?.uid !== stored.shadow.uid) {
			return done;
		}
		const lost = new Set(this.#absent(stored).filter((uid) => deleted.has(uid)));
		const affected = stored.shadow.outgoing.filter(({ deploymentUid }) => lost.has(deploymentUid));
		if (affected.length === 0) {
			return done;
		}
		const cleared = affected.filter(({ rule }) => rule === OnDelete.UNSET);
		try {
			if (cleared.length > 0) {
				// The change triggers another pass, which reports the remaining references.
				await clearReferences(this.#context, this.#store, { resource, stored }, cleared);
				return done;
			}
			const reported = withCondition(
				resource,
				condition(targetsKept, false, reportOf(affected)),
				this.#context.runtime.clock,
			);
			if (reported !== undefined) {
				await this.#store.commit([
					{ op: "put", resource: reported, expectedVersion: resource.version },
					{ op: "assert", id: recordId(name), expectedVersion: stored.version },
				]);
			}
			return done;
		} catch (failure) {
			if (isConflict(failure)) {
				return afterConflict(limits);
			}
			throw failure;
		}
	}
}

function deploymentOf({ task }: Task): string {
	return task.case === "confirm" ? (task.value.deployment?.uid ?? "") : "";
}

function reportOf(affected: readonly OutgoingReference[]): string {
	return `references to a deleted deployment: ${displayReferences(affected)}`;
}
