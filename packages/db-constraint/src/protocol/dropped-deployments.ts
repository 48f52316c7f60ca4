import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	DroppedDeploymentSchema,
	SucceededDeploymentSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, StorageBackend } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { hashOf } from "../shadow/resource-key.ts";
import type { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord, type RecordInit, readRecord, recordId } from "../shadow/shadow-records.ts";

/** The header that refuses a deployment which was deleted, with its uid. */
export const deletedHeader = "x-plinth-deployment-deleted";

/** The header that refuses a deployment which another one has taken over: its uid, a space, the successor's uid. */
export const succeededHeader = "x-plinth-deployment-succeeded";

/** Options of `DroppedDeployments`. */
export interface DroppedDeploymentsOptions {
	readonly backend: StorageBackend;
	readonly index: ShadowIndex;
	readonly runtime: Runtime;
}

/**
 * The deployments that this one refuses, in a record for each that stays permanently: deleted ones whose sources it
 * drops, and those whose successor it has relied on.
 *
 * A deleted deployment may not know that it was: it may have been cut off from the meta deployments, or have started
 * without one. If it could establish references again after its sources were dropped, it would keep some of them that
 * nobody knows. So the record is written before the first source is dropped, each establishment asserts that there is
 * none, and calls of the deployment are refused from then on. One that is refused stops, and starts as a successor.
 *
 * In the same way a deployment may still run although its backup was restored elsewhere, and a server of this deployment
 * may not know the successor yet. So the record is written before a successor is queried about what its predecessor
 * references, and before references are established with a successor; commits assert that there is none for each
 * deployment that they have established references with, and for each one whose deletions or decisions they apply.
 */
export class DroppedDeployments {
	readonly #options: DroppedDeploymentsOptions;

	constructor(options: DroppedDeploymentsOptions) {
		this.#options = options;
	}

	/**
	 * Refuses a deployment that was dropped or taken over.
	 *
	 * @throws ConnectError Unavailable, with `deletedHeader` or `succeededHeader`.
	 */
	assertNotDropped(uid: string): void {
		if (this.has(uid)) {
			throw refusal(uid);
		}
		const successorUid = this.successorOf(uid);
		if (successorUid !== undefined) {
			throw refusalOfPredecessor(uid, successorUid);
		}
	}

	/**
	 * Whether the deployment was dropped or taken over, as far as this server has seen: then nothing that it has announced
	 * or responded before counts any longer.
	 */
	isRefused(uid: string): boolean {
		return this.has(uid) || this.successorOf(uid) !== undefined;
	}

	/** Whether a deleted deployment was dropped, as far as this server has seen. */
	has(uid: string): boolean {
		return this.#options.index.dropped.has(uid);
	}

	/** The uid of the successor that this deployment has relied on, as far as this server has seen. */
	successorOf(uid: string): string | undefined {
		return this.#options.index.succeeded.get(uid);
	}

	/**
	 * Fails a commit once the deployment is dropped or taken over. `assertNotDroppedNow` then says whether that was the
	 * cause.
	 */
	notDropped(uid: string): Mutation {
		return { op: "assert", id: recordId(droppedName(uid)), expectedVersion: "" };
	}

	/**
	 * Like `assertNotDropped`, from a strong read.
	 *
	 * @throws ConnectError Unavailable, with `deletedHeader` or `succeededHeader`; StorageError if the storage can't be
	 *   read.
	 */
	async assertNotDroppedNow(uid: string): Promise<void> {
		const { backend } = this.#options;
		const stored = await readRecord(backend, droppedName(uid), { consistency: "strong" });
		if (stored?.record.case === "succeeded") {
			throw refusalOfPredecessor(uid, stored.record.value.successorUid);
		}
		if (stored !== undefined) {
			throw refusal(uid);
		}
	}

	/** Whether the deployment was dropped or taken over, from a strong read. */
	async isRefusedNow(uid: string): Promise<boolean> {
		const { backend } = this.#options;
		return (await readRecord(backend, droppedName(uid), { consistency: "strong" })) !== undefined;
	}

	/** Drops a deleted deployment permanently. @throws StorageError if that can't be stored. */
	async drop(uid: string): Promise<void> {
		if (!this.has(uid)) {
			await this.#record(uid, {
				case: "dropped",
				value: create(DroppedDeploymentSchema, { uid }),
			});
		}
	}

	/** Relies on a successor permanently, instead of this deployment. @throws StorageError if that can't be stored. */
	async succeed(uid: string, successorUid: string): Promise<void> {
		if (this.successorOf(uid) === undefined && !this.has(uid)) {
			await this.#record(uid, {
				case: "succeeded",
				value: create(SucceededDeploymentSchema, { uid, successorUid }),
			});
		}
	}

	/** The first record stays: both refuse the deployment. */
	async #record(uid: string, record: NonNullable<RecordInit>): Promise<void> {
		const { backend, runtime } = this.#options;
		try {
			await backend.commit([putRecord(runtime, droppedName(uid), undefined, record)]);
		} catch (failure) {
			if (!isConflict(failure)) {
				throw failure;
			}
		}
	}
}

function refusal(uid: string): ConnectError {
	return new ConnectError(
		`deployment ${uid} was deleted, and what it references is no longer kept: restart its servers, which register it again`,
		Code.Unavailable,
		{ [deletedHeader]: uid },
	);
}

/** What operators of a deployment are told that another one has taken over. */
export function takenOverBy(uid: string, successorUid: string): string {
	return `deployment ${uid} was taken over by ${successorUid}, whose storage was restored from its backup: stop the servers of ${uid}. To serve from its storage again, stop those of ${successorUid} and disable its Deployment, delete the Deployment of ${uid}, and start its servers: they register a new one, which takes over from both`;
}

/** Refuses a call by or to a deployment that another one has taken over. */
export function refusalOfPredecessor(uid: string, successorUid: string): ConnectError {
	return new ConnectError(takenOverBy(uid, successorUid), Code.Unavailable, {
		[succeededHeader]: `${uid} ${successorUid}`,
	});
}

function droppedName(uid: string): string {
	return `dropped-${hashOf(uid).slice(0, 40)}`;
}
