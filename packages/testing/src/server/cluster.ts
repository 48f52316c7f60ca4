import type { ManagerState } from "@plinth/controller";
import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import type { TestLeases } from "../leases/test-leases.ts";

/** The parts that all servers of a cluster share. */
export interface Cluster {
	readonly runtime: SeededRuntime;
	/** The storage, without delays. */
	readonly backend: StorageBackend;
	readonly leases: TestLeases;
	/** The servers, each with the state of its controllers unless they are stopped. */
	readonly servers: Set<{ readonly state: ManagerState | undefined }>;
}
