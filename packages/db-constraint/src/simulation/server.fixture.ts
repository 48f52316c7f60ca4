import type { Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Runtime, SuspendableLeases, silentLogger } from "@plinth/runtime";
import { SkewedClock } from "@plinth/runtime/testing";
import { Refused, type StorageBackend, type StorageIdentity } from "@plinth/storage";
import { controllerClients } from "../lab/own-client.fixture.ts";
import { openReferences, type References } from "../node/open-references.ts";
import { type AuthoritativeStorage, backendOf } from "./authoritative-storage.fixture.ts";
import { faultyStorage } from "./faulty-storage.fixture.ts";
import { metaAddress } from "./meta.fixture.ts";
import { MissingDeployments } from "./missing-deployments.fixture.ts";
import { networkTransport } from "./network.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulatedLeases } from "./simulated-leases.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** The state of a deployment that its servers share. */
export interface SharedState {
	readonly authoritative: AuthoritativeStorage;
	readonly leases: SimulatedLeases;
	/** The address of the server that has crashed last. */
	readonly addressBefore?: string;
}

/** See `SimulatedServer`. Its references are opened as a server of the product opens them. */
export class Server implements SimulatedServer {
	readonly name: string;
	readonly address: string;
	readonly lifetime = new Lifetime();
	readonly runtime: Runtime;
	readonly storage: StorageBackend;
	readonly deployment: SimulatedDeployment;
	readonly schema: SimulatedSchema;
	readonly #sim: SimulationContext;
	readonly #leases: SuspendableLeases;
	readonly #missing: MissingDeployments;
	readonly #mayDrop: boolean;
	readonly #identity: StorageIdentity | undefined;
	#references: References | undefined;
	transport: Transport | undefined;
	isOpen = false;

	constructor(sim: SimulationContext, deployment: SimulatedDeployment, shared: SharedState) {
		this.#sim = sim;
		this.deployment = deployment;
		this.schema = deployment.schema;
		this.#mayDrop = deployment.isForced;
		this.name = deployment.info.name;
		this.address = sim.freeAddress(shared.addressBefore);
		const { random, clock } = sim.runtime;
		const minutes = (random.next() - 0.5) * 20;
		const skewed = new SkewedClock(clock, {
			offsetMs: Math.round(minutes * 60_000),
			rate: sim.pick([1, 1, 1.01, 0.99]),
		});
		this.runtime = this.lifetime.runtime(sim.runtime, skewed, random);
		const backend = backendOf(sim, shared.authoritative, this.lifetime, sim.isLagging);
		this.#identity = shared.authoritative.identity;
		this.storage = faultyStorage(sim, this.name, backend, this.lifetime);
		this.#leases = new SuspendableLeases(shared.leases.of(this.lifetime));
		this.#missing = new MissingDeployments(
			sim,
			sim.deployments
				.filter(({ info }) => info !== deployment.info && sim.happens(sim.faults.missing))
				.map(({ info }) => info.name),
		);
	}

	get store(): StorageBackend {
		if (this.#references === undefined) {
			throw new Error(`a server of ${this.name} is not open yet`);
		}
		return this.#references.store;
	}

	/** Starts as the product does: what fails ends the process, and another one is started. */
	start(): void {
		this.#run().catch((failure) => {
			this.#sim.observer.failed(this.name, failure);
			if (failure instanceof Refused && failure.message.includes("--drop-versions-in-use")) {
				this.deployment.refused();
			}
			this.#end();
		});
	}

	stall(ms: number): void {
		this.#sim.trace.add(this.name, () => `a server stalls for ${Math.round(ms)} ms`);
		this.lifetime.stall();
		void this.#sim.wait(ms).then(() => this.lifetime.wake());
	}

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
		const { runtime, name, deployment } = this;
		const sim = this.#sim;
		const references = await openReferences({
			backend: this.storage,
			descriptor: this.schema.descriptor,
			deployment: {
				...{ name, service: deployment.info.service, region: deployment.info.region },
				version: this.schema.version,
				address: this.address,
				metaAddresses: [metaAddress],
				connect: (address) => this.#connect(address),
				ownService: () => {
					throw new Error("only meta deployments register with themselves");
				},
			},
			dropsVersionsInUse: this.#mayDrop,
			leases: this.#leases,
			identity: this.#identity,
			onFailure: (failure) => {
				sim.observer.failed(name, failure);
				this.#end();
			},
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
		this.transport = createInProcessTransport(
			(router) => router.service(SchemaMixinService, references.service),
			runtime,
		);
		await references.discover(ended.signal);
		references.control({
			...controllerClients(references.store, this.schema.types, runtime),
			leases: this.#leases,
		});
		this.isOpen = true;
	}

	/** The process has ended by itself: it is started again after a while. */
	#end(): void {
		if (!this.lifetime.isOver) {
			this.deployment.crash(this);
			void this.#sim.wait(500).then(() => this.deployment.start());
		}
	}

	#connect(address: string): Transport {
		const transport = networkTransport(this.#sim, this, address);
		return address === metaAddress ? this.#missing.hideFrom(transport) : transport;
	}
}
