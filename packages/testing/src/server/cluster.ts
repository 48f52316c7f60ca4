import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import type { TestLeases } from "../leases/test-leases.ts";
import type { TestServer } from "./test-server.ts";

/** What the servers of one cluster share. */
export interface Cluster {
	readonly runtime: SeededRuntime;
	/** The storage, without delays. */
	readonly backend: StorageBackend;
	readonly leases: TestLeases;
	readonly servers: Set<TestServer>;
}
