import type { Client, ServiceImpl, Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import type { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type ResourceType, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { type Runtime, SuspendableLeases, silentLogger } from "@plinth/runtime";
import { SkewedClock } from "@plinth/runtime/testing";
import type { StorageBackend, StorageIdentity } from "@plinth/storage";
import { controllerClients } from "../lab/own-client.fixture.ts";
import { openReferences, type References } from "../node/open-references.ts";
import type { ReferenceServiceOptions } from "../plan/reference-service.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { type AuthoritativeStorage, backendOf } from "./authoritative-storage.fixture.ts";
import { faultyStorage } from "./faulty-storage.fixture.ts";
import { networkTransport } from "./network.fixture.ts";
import type { SimulatedProcess } from "./participants.fixture.ts";
import { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulatedLeases } from "./simulated-leases.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** What the servers of a deployment share. */
export interface SharedState {
	readonly authoritative: AuthoritativeStorage;
	readonly leases: SimulatedLeases;
}

/** Options of a `ServerProcess`. */
export interface ProcessOptions extends SharedState {
	/** The name of its deployment. */
	readonly name: string;
	readonly service: string;
	readonly region: string;
	/** Where it listens. */
	readonly address: string;
	/** What it announces to other deployments. Default: `address`. */
	readonly announced?: string | undefined;
	readonly version: string;
	readonly descriptor: ServiceDescriptor;
	readonly types: readonly ResourceType[];
	/** Whether it may start with a schema that lacks versions in use. */
	readonly mayDrop?: boolean;
	/** Whether other deployments may read and write its resources, and not only reference them. */
	readonly isMeta?: boolean;
	/** The transport to a server of another deployment. Default: by the network. */
	readonly connect?: (address: string, network: Transport) => Transport;
	/** The process has ended by itself: it must start again. */
	readonly onEnd: (failure: unknown) => void;
}

/** A process of a server, whose references are opened as a server of the product opens them. */
export class ServerProcess implements SimulatedProcess {
	readonly name: string;
	readonly address: string;
	readonly lifetime = new Lifetime();
	readonly runtime: Runtime;
	readonly storage: StorageBackend;
	readonly #sim: SimulationContext;
	readonly #options: ProcessOptions;
	readonly #leases: SuspendableLeases;
	readonly #identity: StorageIdentity | undefined;
	#references: References | undefined;
	#client: Client<typeof ResourceService> | undefined;
	transport: Transport | undefined;
	isOpen = false;

	constructor(sim: SimulationContext, options: ProcessOptions) {
		this.#sim = sim;
		this.#options = options;
		this.name = options.name;
		this.address = options.address;
		const { random, clock } = sim.runtime;
		const minutes = (random.next() - 0.5) * 20;
		const skewed = new SkewedClock(clock, {
			offsetMs: Math.round(minutes * 60_000),
			rate: sim.pick([1, 1, 1.01, 0.99]),
		});
		this.runtime = this.lifetime.runtime(sim.runtime, skewed, random);
		const { authoritative, leases } = options;
		this.#identity = authoritative.identity;
		const backend = backendOf(sim, authoritative, this.lifetime, sim.isLagging);
		this.storage = faultyStorage(sim, this.name, backend, this.lifetime);
		this.#leases = new SuspendableLeases(leases.of(this.lifetime));
	}

	get store(): StorageBackend {
		return this.#opened.store;
	}

	referenceService(options: ReferenceServiceOptions): ServiceImpl<typeof ReferenceService> {
		return this.#opened.referenceService(options);
	}

	get #opened(): References {
		if (this.#references === undefined) {
			throw new Error(`a server of ${this.name} is not open yet`);
		}
		return this.#references;
	}

	/** The resource service of this server; `undefined` before its references are open. */
	get client(): Client<typeof ResourceService> | undefined {
		return this.#client;
	}

	/** Starts as the product does: what fails ends the process, and another one is started. */
	start(): void {
		this.#run().catch((failure) => this.#end(failure));
	}

	/** Does nothing for a while. */
	stall(ms: number): void {
		this.#sim.trace.add(this.name, () => `a server stalls for ${Math.round(ms)} ms`);
		this.lifetime.stall();
		void this.#sim.wait(ms).then(() => this.lifetime.wake());
	}

	/** Stops in order, as long as the storage responds. */
	async stop(): Promise<void> {
		this.isOpen = false;
		this.#sim.trace.add(this.name, () => "a server stops");
		await this.#references?.close();
	}

	/** Stops abruptly, whatever is in progress. */
	crash(): void {
		this.isOpen = false;
		this.lifetime.end();
	}

	async #run(): Promise<void> {
		const { runtime, name, address } = this;
		const { service, region, version, descriptor, types, mayDrop, isMeta } = this.#options;
		const { announced = address } = this.#options;
		const sim = this.#sim;
		const references = await openReferences({
			backend: this.storage,
			descriptor,
			deployment: {
				...{ name, service, region, version },
				...{ address: announced, directAddress: address },
				metaAddresses: sim.meta.addresses,
				connect: (to) => this.#connect(to),
				ownService: () => {
					if (this.#client === undefined) {
						throw new Error(`a server of ${name} is not open yet`);
					}
					return this.#client;
				},
			},
			dropsVersionsInUse: mayDrop ?? false,
			limits: { passesPerDeployment: sim.passesPerDeployment },
			leases: this.#leases,
			identity: this.#identity,
			onFailure: (failure) => this.#end(failure),
			runtime,
			logger: silentLogger,
		});
		this.#references = references;
		// Node keeps composite signals in memory, and all that listens to them, until they abort.
		const ended = new AbortController();
		sim.atEnd(() => {
			ended.abort();
			void references.close();
		});
		await ensureDefaultTenancy(references.store, runtime);
		const clients = controllerClients(references.store, types, runtime);
		this.#client = clients.client;
		this.transport = createInProcessTransport((router) => {
			router.service(SchemaMixinService, references.service);
			if (isMeta) {
				router.service(
					ResourceService,
					createResourceService({
						backend: references.store,
						registry: new TypeRegistry(types),
						authorizer: insecureAllowAll,
						runtime,
					}),
				);
			}
		}, runtime);
		await references.discover(ended.signal);
		references.control({ ...clients, leases: this.#leases });
		this.isOpen = true;
	}

	#end(failure: unknown): void {
		this.#sim.observer.failed(this.name, failure);
		if (!this.lifetime.isOver) {
			this.#options.onEnd(failure);
		}
	}

	#connect(address: string): Transport {
		const transport = networkTransport(this.#sim, this, address);
		return this.#options.connect?.(address, transport) ?? transport;
	}
}
