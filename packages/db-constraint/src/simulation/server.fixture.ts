import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Runtime, silentLogger, sleep } from "@plinth/runtime";
import { SkewedClock } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import { type Constraints, createConstraints } from "../constraints.ts";
import { followDeletions } from "../controller/follow-deletions.ts";
import type { Deletion } from "../controller/subscribed-deleting-handler.ts";
import type { DeploymentInfo, Environment } from "../environment.ts";
import { DeploymentRegistry } from "../registry/deployment-registry.ts";
import { ShadowLoop } from "../shadow-loop.fixture.ts";
import { type AuthoritativeStorage, backendOf } from "./authoritative-storage.fixture.ts";
import { faultyStorage } from "./faulty-storage.fixture.ts";
import { metaTransport } from "./meta-transport.fixture.ts";
import { clientOf } from "./network.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** See `SimulatedServer`. */
export class Server implements SimulatedServer {
	readonly name: string;
	readonly lifetime = new Lifetime();
	readonly runtime: Runtime;
	readonly storage: StorageBackend;
	readonly constraints: Constraints;
	readonly deployment: SimulatedDeployment;
	readonly schema: SimulatedSchema;
	readonly #sim: SimulationContext;
	readonly #loop: ShadowLoop;
	readonly #registry: DeploymentRegistry;
	/** The uids of the deployments whose deletions it follows. */
	readonly #followed = new Set<string>();
	readonly #stop = new AbortController();
	/** The names of the deployments that are missing from this server's registry view. */
	readonly #missing = new Set<string>();
	isOpen = false;

	constructor(
		sim: SimulationContext,
		deployment: SimulatedDeployment,
		authoritative: AuthoritativeStorage,
	) {
		this.#sim = sim;
		this.deployment = deployment;
		this.schema = deployment.schema;
		this.name = deployment.info.name;
		const { random, clock } = sim.runtime;
		const minutes = (random.next() - 0.5) * 20;
		const skewed = new SkewedClock(clock, {
			offsetMs: Math.round(minutes * 60_000),
			rate: sim.pick([1, 1, 1.01, 0.99]),
		});
		this.runtime = this.lifetime.runtime(sim.runtime, skewed, random);
		const backend = backendOf(sim, authoritative, this.lifetime, sim.isLagging);
		this.storage = faultyStorage(sim, this.name, backend, this.lifetime);
		for (const { info } of sim.deployments) {
			if (info !== deployment.info && sim.happens(sim.faults.missing)) {
				this.#missing.add(info.name);
				void sim.wait(random.next() * 60_000).then(() => this.#missing.delete(info.name));
			}
		}
		this.#registry = new DeploymentRegistry({
			deployment: { ...deployment.info, version: this.schema.version, address: this.name },
			descriptor: this.schema.descriptor,
			backend: this.storage,
			metaAddresses: [sim.meta.name],
			connect: () => metaTransport(sim, this),
			runtime: this.runtime,
		});
		this.constraints = createConstraints({
			backend: this.storage,
			descriptor: this.schema.descriptor,
			environment: this.#environment(),
			runtime: this.runtime,
			logger: silentLogger,
		});
		this.#loop = new ShadowLoop({
			constraints: this.constraints,
			...this.runtime,
			onFailure: (failure) => sim.observer.failed(this.name, failure),
		});
	}

	get service(): ServiceImpl<typeof SchemaMixinService> {
		return this.constraints.service;
	}

	get store(): StorageBackend {
		return this.constraints.store;
	}

	/** Serves as soon as it is registered and knows the other deployments. */
	start(): void {
		const { signal } = this.#stop;
		void this.#registry.run(signal);
		void this.#begin(signal);
	}

	/** Stops abruptly, whatever is in progress. */
	crash(): void {
		this.lifetime.end();
		this.#loop.stop();
		this.#stop.abort();
	}

	async #begin(signal: AbortSignal): Promise<void> {
		const { schemaPass } = this.constraints;
		await this.#untilDone(() => schemaPass.begin());
		await this.lifetime.within(this.#registry.ready(signal));
		void this.constraints.run(signal);
		this.#follow(signal);
		this.#registry.onChange(() => this.#follow(signal));
		this.isOpen = true;
		await this.#untilDone(() => schemaPass.complete(signal));
		await this.#untilDone(() => this.#registry.announce(this.schema.version));
	}

	async #untilDone(step: () => Promise<void>): Promise<void> {
		for (;;) {
			try {
				await step();
				return;
			} catch (failure) {
				this.#sim.observer.failed(this.name, failure);
				await sleep(this.runtime.clock, 500);
			}
		}
	}

	/** Follows the deletions of all deployments in the registry view. */
	#follow(signal: AbortSignal): void {
		const { info, service } = this.deployment;
		for (const other of this.#registry.deployments()) {
			const isFollowed = other.name === info.name || this.#followed.has(other.uid);
			if (!isFollowed && service.follows.includes(other.service)) {
				this.#followed.add(other.uid);
				const { context } = this.constraints;
				const onDeletion = (deletion: Deletion) => this.#loop.deletion(deletion);
				void followDeletions(context, other.uid, onDeletion, signal);
			}
		}
	}

	/** The registry, without the deployments that are missing from the registry view. */
	#environment(): Environment {
		const registry = this.#registry;
		const isSeen = ({ name }: DeploymentInfo) => !this.#missing.has(name);
		const seen = (info: DeploymentInfo | undefined) => (info && isSeen(info) ? info : undefined);
		return {
			get self() {
				return registry.self;
			},
			deployments: () => registry.deployments().filter(isSeen),
			find: (service, region) => seen(registry.find(service, region)),
			findOwner: (...owner) => seen(registry.findOwner(...owner)),
			client: (uid) => {
				if (!registry.deployments().some((each) => each.uid === uid && isSeen(each))) {
					throw new ConnectError(`deployment ${uid} is not known`, Code.Unavailable);
				}
				registry.client(uid);
				return clientOf(this.#sim, this, uid);
			},
			isDeleted: (uid) => registry.isDeleted(uid),
			onChange: (listener) => registry.onChange(listener),
		};
	}
}
