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
import { type RestOptions, unrest } from "./at-rest.ts";
import type { Cluster } from "./cluster.ts";
import type { ControllerRun } from "./controller-run.ts";
import { drivenClient } from "./driven-client.ts";
import type { TestLog } from "./log.ts";

/** What a resource is to be, besides its type and name. */
export interface WriteOptions {
	/** Units that are left out are `default`. */
	readonly tenancy?: TenancyLike;
	readonly owner?: ID;
	readonly metadata?: Readonly<Record<string, string>>;
	/** The version that it must replace; without it, whichever is there. */
	readonly version?: string;
}

/** What a server consists of. */
export interface TestServerParts {
	readonly cluster: Cluster;
	readonly clock: Clock;
	readonly leases: TestLeases;
	readonly log: TestLog;
	readonly faults: ClientFaults;
	/** Drives nothing. */
	readonly background: ResourceClient;
	/** Starts its controllers. */
	readonly startControllers: () => ControllerRun;
}

/**
 * A whole server in memory: storage, resource service, in-process transport and controllers, under
 * one seeded scheduler and on a clock that stands still. Nothing happens but while a method of the
 * server, or a call of its client, is awaited; then everything does, in an order that the seed decides.
 */
export class TestServer implements AsyncDisposable {
	/** The resource service, with full rights; it clones. Calls move the clock only where they must. */
	readonly client: ResourceClient;
	/** The same for code that runs beside the test: its calls go on while something else is awaited. */
	readonly background: ResourceClient;
	/** What goes wrong between the controllers and the resource service, on cue. */
	readonly faults: ClientFaults;
	readonly log: TestLog;
	readonly leases: TestLeases;
	/** What this server takes for the time. */
	readonly clock: Clock;
	readonly #cluster: Cluster;
	readonly #startControllers: () => ControllerRun;
	#controllers: ControllerRun | undefined;

	/** Use `startTestServer`. */
	constructor(parts: TestServerParts) {
		this.client = drivenClient(parts.background, parts.cluster.runtime.scheduler);
		this.background = parts.background;
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

	/** What servers of one cluster share; for `joins`. */
	get cluster(): Cluster {
		return this.#cluster;
	}

	/** Runs everything that needs no time. */
	settle(): Promise<void> {
		return this.runtime.scheduler.drain();
	}

	/** Lets that many milliseconds pass, and everything happen that comes of it. */
	advance(byMs: number): Promise<void> {
		return this.runtime.scheduler.advance(byMs);
	}

	/**
	 * Lets time pass until the controllers of the cluster have nothing to do: all of them run, and none
	 * has anything queued, under way, or to be tried again.
	 *
	 * @param options - `limitMs` is how much time may pass at most; an hour by default.
	 * @throws Error that says who is not at rest.
	 */
	async quiesce(options: RestOptions & { readonly limitMs?: number } = {}): Promise<void> {
		const { limitMs } = options;
		const busy = () =>
			unrest(
				[...this.#cluster.servers].flatMap((server) => server.state ?? []),
				options,
			);
		await this.runtime.scheduler.until(() => busy().length === 0, {
			...(limitMs !== undefined && { limitMs }),
			describe: () => busy().join("; "),
		});
	}

	/** What its controllers do; absent while they are stopped. */
	get state(): ManagerState | undefined {
		return this.#controllers?.state();
	}

	/** Writes a resource, new or over the stored one; answers it as it was stored. */
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
			throw new Error("the write was answered without a resource");
		}
		return decode(type, resource);
	}

	/** The stored resource, or `undefined` where there is none. */
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

	/** All stored resources of a type, of one tenancy or, by default, of all; by tenancy and name. */
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

	/** Deletes a resource, or marks it where it has finalizers. A missing one is no error. */
	async delete(type: ResourceType, name: string, tenancy?: TenancyLike): Promise<void> {
		await this.client.delete({ id: idOf(type, name, tenancy) });
	}

	/** Starts the controllers; they have been told to run when it returns, and not yet done so. */
	startControllers(): void {
		if (this.#controllers !== undefined) {
			throw new Error("the controllers of the test server run already");
		}
		this.#controllers = this.#startControllers();
	}

	/** Stops the controllers as a server that is stopped does, and resolves when all have ended. */
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

	/** Stops the controllers, and starts them with nothing in their memory. */
	async restartControllers(): Promise<void> {
		await this.stopControllers();
		this.startControllers();
	}

	/** Ends all faults, then the controllers; and with the last server of a cluster its storage. */
	async [Symbol.asyncDispose](): Promise<void> {
		this.faults.relent();
		await this.stopControllers();
		this.#cluster.servers.delete(this);
		if (this.#cluster.servers.size === 0) {
			await this.#cluster.backend.close();
			await this.settle();
		}
	}
}
