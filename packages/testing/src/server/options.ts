import type { Controller, ControllerLimits, ResourceClient } from "@plinth/controller";
import type { ResourceType } from "@plinth/resource";
import type { Clock, Logger, Scheduler } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import type { TestLeases } from "../leases/test-leases.ts";
import type { TestServer } from "./test-server.ts";

/** The options of a test server. */
export interface TestServerOptions {
	/** The types that it serves, in addition to Partition, Namespace and Tombstone. */
	readonly types?: readonly ResourceType[];
	/** The controllers that it runs. Cascading deletion of owned resources and of the contents of namespaces requires the system controllers. */
	readonly controllers?: readonly Controller[];
	/** Determines the order of all events; 1 by default. Runs with the same seed are identical. */
	readonly seed?: number;
	/** The scheduler to run on, if the test creates it; it has its own seed. */
	readonly runtime?: SeededRuntime;
	/** The probability that a step of the storage lets another task run first: at least 0, less than 1. 0 by default. */
	readonly storageDelays?: number;
	/** Decorates the in-memory storage, inside the delays. */
	readonly decorateBackend?: (backend: StorageBackend) => StorageBackend;
	/**
	 * Makes it another server of the same cluster, with the same storage, leases and seed. It must be stopped
	 * before the server that it joins.
	 */
	readonly joins?: TestServer;
	/** Its clock, for example a `SkewedClock`. The clock of the runtime by default. */
	readonly clock?: Clock;
	/**
	 * Schedules its calls and its controllers: an `EventLoopScheduler`, whose loops run as in a process. By default, each of
	 * their steps is a task of the runtime's scheduler.
	 */
	readonly scheduler?: Scheduler;
	/** Grants the lease of singletons; `LocalLeases` by default, or those of the server that it joins. */
	readonly leases?: TestLeases;
	/** Limits of its controllers that differ from the default. */
	readonly limits?: Partial<ControllerLimits>;
	/** Its logger; by default the server's `log`. */
	readonly logger?: Logger;
	/** Wraps the client that controllers watch through. */
	readonly wrapWatching?: (client: ResourceClient) => ResourceClient;
	/** Wraps the client that controllers read and write through. */
	readonly wrapWriting?: (client: ResourceClient) => ResourceClient;
}
