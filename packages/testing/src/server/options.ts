import type { Controller, ControllerLimits, ResourceClient } from "@plinth/controller";
import type { ResourceType } from "@plinth/resource";
import type { Clock, Logger } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import type { TestLeases } from "../leases/test-leases.ts";
import type { TestServer } from "./test-server.ts";

/** What a test server is made with. */
export interface TestServerOptions {
	/** The types that it serves, besides Partition, Namespace and Tombstone, which it always does. */
	readonly types?: readonly ResourceType[];
	/** What it runs; to have what is owned and what is in a namespace deleted, the system controllers too. */
	readonly controllers?: readonly Controller[];
	/** Decides the order of everything; 1 by default. The same seed, the same run. */
	readonly seed?: number;
	/** The world to run in, where the test makes it; it has its own seed. */
	readonly runtime?: SeededRuntime;
	/** What part of the storage's steps waits a turn: from 0 on, below 1. 0 by default. */
	readonly storageDelays?: number;
	/** Decorates the in-memory storage, inside of its delays. */
	readonly decorateBackend?: (backend: StorageBackend) => StorageBackend;
	/**
	 * Makes it another server of the same cluster: of the same storage, the same leases and the same
	 * seed. It is to be stopped before the one that it joins.
	 */
	readonly joins?: TestServer;
	/** What it takes for the time: a `SkewedClock`, say. That of the runtime by default. */
	readonly clock?: Clock;
	/** Where it gets the lease of singletons from; `LocalLeases` by default, or those it joins. */
	readonly leases?: TestLeases;
	/** Limits of its controllers that differ from the default. */
	readonly limits?: Partial<ControllerLimits>;
	/** Where it logs; by default the server's `log`. */
	readonly logger?: Logger;
	/** Wraps the client that controllers watch through. */
	readonly wrapWatching?: (client: ResourceClient) => ResourceClient;
	/** Wraps the client that controllers read and write through. */
	readonly wrapWriting?: (client: ResourceClient) => ResourceClient;
}
