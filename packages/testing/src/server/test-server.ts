import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ManagerState, ResourceClient } from "@plinth/controller";
import type { ID } from "@plinth/proto";
import {
	type Decoded,
	decode,
	idOf,
	type ResourceType,
	resourceOf,
	type TenancyLike,
	tenancyOf,
	typeOf,
} from "@plinth/resource";
import type { Clock } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import type { ClientFaults } from "../faults/client-faults.ts";
import type { TestLeases } from "../leases/test-leases.ts";
import { pendingWork, type QuiesceOptions } from "./at-rest.ts";
import { autoAdvancingClient } from "./auto-advancing-client.ts";
import type { Cluster } from "./cluster.ts";
import type { ControllerRun } from "./controller-run.ts";
import type { TestLog } from "./log.ts";

/** The content of a resource, besides its type and name. */
export interface WriteOptions {
	/** Omitted units are `default`. */
	readonly tenancy?: TenancyLike;
	readonly owner?: ID;
	readonly metadata?: Readonly<Record<string, string>>;
	/** The version to be replaced; without it, any version is replaced. */
	readonly version?: string;
}

/** The parts of a server. */
export interface TestServerParts {
	readonly cluster: Cluster;
	readonly clock: Clock;
	readonly leases: TestLeases;
	readonly log: TestLog;
	readonly faults: ClientFaults;
	/** A client that does not run the scheduler. */
	readonly backgroundClient: ResourceClient;
	/** Starts its controllers. */
	readonly startControllers: () => ControllerRun;
}

/**
 * An in-memory server with storage, resource service, in-process transport and controllers, on one seeded
 * scheduler and a fake clock. It only runs while a method of the server, or a call of its client, is awaited,
 * in an order that the seed determines.
 */
export class TestServer implements AsyncDisposable {
	/** A cloning client of the resource service, with full rights. Calls advance the clock only if necessary. */
	readonly client: ResourceClient;
	/** The same for code that runs concurrently with the test: its calls proceed while something else is awaited. */
	readonly backgroundClient: ResourceClient;
	/** Injects faults between the controllers and the resource service. */
	readonly faults: ClientFaults;
	readonly log: TestLog;
	readonly leases: TestLeases;
	/** The clock of this server. */
	readonly clock: Clock;
	readonly #cluster: Cluster;
	readonly #startControllers: () => ControllerRun;
	#controllers: ControllerRun | undefined;

	/** Use `startTestServer`. */
	constructor(parts: TestServerParts) {
		this.client = autoAdvancingClient(parts.backgroundClient, parts.cluster.runtime.scheduler);
		this.backgroundClient = parts.backgroundClient;
		this.faults = parts.faults;
		this.log = parts.log;
		this.leases = parts.leases;
		this.clock = parts.clock;
		this.#cluster = parts.cluster;
		this.#startControllers = parts.startControllers;
		this.#cluster.servers.add(this);
	}

	/** The clock, the randomness and the scheduler that its cluster runs on. */
	get runtime(): SeededRuntime {
		return this.#cluster.runtime;
	}

	/** The storage, without delays. */
	get backend(): StorageBackend {
		return this.#cluster.backend;
	}

	/** The parts shared by the servers of a cluster, for `joins`. */
	get cluster(): Cluster {
		return this.#cluster;
	}

	/** Runs everything that can run without advancing the clock. */
	settle(): Promise<void> {
		return this.runtime.scheduler.drain();
	}

	/** Advances the clock by that many milliseconds, and runs everything that becomes due. */
	advance(byMs: number): Promise<void> {
		return this.runtime.scheduler.advance(byMs);
	}

	/**
	 * Advances the clock until the controllers of the cluster are idle: all of them are running, and none has
	 * queued, running or failed requests.
	 *
	 * @param options - `limitMs` limits the time that may pass; an hour by default.
	 * @throws Error that names the controllers that are not idle.
	 */
	async quiesce(options: QuiesceOptions & { readonly limitMs?: number } = {}): Promise<void> {
		const { limitMs } = options;
		const pending = () =>
			pendingWork(
				[...this.#cluster.servers].flatMap((server) => server.state ?? []),
				options,
			);
		await this.runtime.scheduler.until(() => pending().length === 0, {
			...(limitMs !== undefined && { limitMs }),
			describe: () => pending().join("; "),
		});
	}

	/** The state of its controllers; absent while they are stopped. */
	get state(): ManagerState | undefined {
		return this.#controllers?.state();
	}

	/** Creates or replaces a resource, and returns it as stored. */
	async write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		name: string,
		data: MessageInitShape<Desc>,
		options: WriteOptions = {},
	): Promise<Decoded<Desc>> {
		const { tenancy, owner, metadata, version = "" } = options;
		const init = resourceOf(type, {
			id: idOf(type, name, tenancy),
			data: create(type.schema, data),
			...(owner && { owner }),
			...(metadata && { metadata }),
		});
		const { resource } = await this.client.write({ resource: { ...init, version } });
		if (resource === undefined) {
			throw new Error("the response to the write lacks the resource");
		}
		return decode(type, resource);
	}

	/** The stored resource; `undefined` if it does not exist. */
	async read<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		name: string,
		tenancy?: TenancyLike,
	): Promise<Decoded<Desc> | undefined> {
		try {
			const { resource } = await this.client.read({ id: idOf(type, name, tenancy) });
			return resource && decode(type, resource);
		} catch (error) {
			if (error instanceof ConnectError && error.code === Code.NotFound) {
				return undefined;
			}
			throw error;
		}
	}

	/** All stored resources of a type, of one tenancy or, by default, of all, ordered by tenancy and name. */
	async list<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		tenancy: TenancyLike = { partition: "*", namespace: "*" },
	): Promise<Decoded<Desc>[]> {
		const { resources } = await this.client.list({
			type: typeOf(type.type),
			tenancy: tenancyOf(tenancy),
		});
		return resources.map((resource) => decode(type, resource));
	}

	/** Deletes a resource, or marks it for deletion if it has finalizers. Deleting a missing one is not an error. */
	async delete(type: ResourceType, name: string, tenancy?: TenancyLike): Promise<void> {
		await this.client.delete({ id: idOf(type, name, tenancy) });
	}

	/** Starts the controllers; they have not run yet when it returns. */
	startControllers(): void {
		if (this.#controllers !== undefined) {
			throw new Error("the controllers of the test server are already running");
		}
		this.#controllers = this.#startControllers();
	}

	/** Stops the controllers like a server that shuts down, and resolves when all have ended. */
	async stopControllers(): Promise<void> {
		const controllers = this.#controllers;
		if (controllers !== undefined) {
			controllers.stop();
			await this.runtime.scheduler.run(controllers.ended);
			if (this.#controllers === controllers) {
				this.#controllers = undefined;
			}
		}
	}

	/** Stops the controllers, and starts them again without any in-memory state. */
	async restartControllers(): Promise<void> {
		await this.stopControllers();
		this.startControllers();
	}

	/** Ends all faults, stops the controllers and, for the last server of a cluster, closes the storage. */
	async [Symbol.asyncDispose](): Promise<void> {
		this.faults.clear();
		await this.stopControllers();
		this.#cluster.servers.delete(this);
		if (this.#cluster.servers.size === 0) {
			await this.#cluster.backend.close();
			await this.settle();
		}
	}
}
