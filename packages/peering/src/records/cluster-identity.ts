import { create } from "@bufbuild/protobuf";
import { ClusterRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { newUlid } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { CasFailure, type StorageBackend, type StorageIdentity } from "@plinth/storage";
import { PeeringRecords } from "./peering-records.ts";

/** What identifies a cluster to its peers. */
export interface ClusterIdentity {
	/** A ULID, generated for the first peering. Backups and restores keep it. */
	readonly uid: string;
	/** The incarnation of its storage, which changes with each restore: versions of another one mean nothing. */
	readonly incarnation: string;
}

/** The identity of a cluster, created when it is first needed. */
export class OwnIdentity {
	readonly #backend: StorageBackend;
	readonly #storage: Pick<StorageIdentity, "incarnation"> | undefined;
	readonly #runtime: Runtime;
	#known: ClusterIdentity | undefined;

	/** @param storage - absent if the storage was never restored: its records identify it. */
	constructor(
		backend: StorageBackend,
		storage: Pick<StorageIdentity, "incarnation"> | undefined,
		runtime: Runtime,
	) {
		this.#backend = backend;
		this.#storage = storage;
		this.#runtime = runtime;
	}

	/** @throws StorageUnavailable. */
	async get(): Promise<ClusterIdentity> {
		if (this.#known !== undefined) {
			return this.#known;
		}
		const records = new PeeringRecords(this.#backend, this.#runtime);
		for (;;) {
			const stored = await records.get("cluster", "");
			if (stored !== undefined) {
				const { uid } = stored.value;
				this.#known = { uid, incarnation: this.#storage?.incarnation ?? uid };
				return this.#known;
			}
			const value = create(ClusterRecordSchema, { uid: newUlid(this.#runtime) });
			try {
				await this.#backend.commit([records.put("cluster", "", value)]);
			} catch (failure) {
				// Another server of the cluster has created it.
				if (!(failure instanceof CasFailure)) {
					throw failure;
				}
			}
		}
	}
}
