import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Runtime, silentLogger, sleep } from "@plinth/runtime";
import { SkewedClock } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import { type Constraints, createConstraints } from "../constraints.ts";
import type { DeploymentInfo, Environment } from "../environment.ts";
import type { Deletion } from "../node/subscribed-deleting-handler.ts";
import { followDeletions } from "../node/subscription.ts";
import { EnvRegistry } from "../registry/env-registry.ts";
import { NodeLoop } from "../testing/node-loop.ts";
import type { Deployment } from "./deployment.ts";
import { Life } from "./life.ts";
import { clientOf } from "./network.ts";
import type { SimulatedSchema } from "./schemas.ts";
import { storageOf } from "./storage.ts";
import { backendOf } from "./truth.ts";
import { wireToMeta } from "./wire.ts";
import type { World } from "./world.ts";

/** A server of a deployment, from its start to its crash. */
export class Server {
	readonly name: string;
	readonly life = new Life();
	readonly runtime: Runtime;
	/** The storage as this server reaches it, without constraints. */
	readonly storage: StorageBackend;
	readonly constraints: Constraints;
	readonly deployment: Deployment;
	readonly schema: SimulatedSchema;
	readonly #world: World;
	readonly #loop: NodeLoop;
	readonly #registry: EnvRegistry;
	/** The uids of those whose deletions it follows. */
	readonly #followed = new Set<string>();
	readonly #stop = new AbortController();
	/** Deployments that are missing in this server's picture, by name. */
	readonly #missing = new Set<string>();
	/** Whether its schema is in force, so that it serves. */
	isOpen = false;

	constructor(world: World, deployment: Deployment) {
		this.#world = world;
		this.deployment = deployment;
		this.schema = deployment.schema;
		this.name = deployment.info.name;
		const { random, clock } = world.runtime;
		const minutes = (random.next() - 0.5) * 20;
		const skewed = new SkewedClock(clock, {
			offsetMs: Math.round(minutes * 60_000),
			rate: world.pick([1, 1, 1.01, 0.99]),
		});
		this.runtime = this.life.runtime(world.runtime, skewed, random);
		const backend = backendOf(world, deployment.truth, this.life, world.isLagging);
		this.storage = storageOf(world, this.name, backend, this.life);
		for (const { info } of world.deployments) {
			if (info !== deployment.info && world.happens(world.weather.missing)) {
				this.#missing.add(info.name);
				void world.pass(random.next() * 60_000).then(() => this.#missing.delete(info.name));
			}
		}
		this.#registry = new EnvRegistry({
			deployment: { ...deployment.info, version: this.schema.version, address: this.name },
			descriptor: this.schema.descriptor,
			backend: this.storage,
			metaAddresses: [world.meta.name],
			connect: () => wireToMeta(world, this),
			runtime: this.runtime,
		});
		this.constraints = createConstraints({
			backend: this.storage,
			descriptor: this.schema.descriptor,
			environment: this.#environment(),
			runtime: this.runtime,
			logger: silentLogger,
		});
		this.#loop = new NodeLoop({
			constraints: this.constraints,
			...this.runtime,
			onFailure: (failure) => world.observer.failed(this.name, failure),
		});
	}

	get service(): ServiceImpl<typeof SchemaMixinService> {
		return this.constraints.service;
	}

	/** The storage with its constraints. */
	get store(): StorageBackend {
		return this.constraints.store;
	}

	/** Begins to serve, once it is registered and knows the others. */
	start(): void {
		const { signal } = this.#stop;
		void this.#registry.run(signal);
		void this.#begin(signal);
	}

	/** Ends at once, whatever is under way. */
	crash(): void {
		this.life.end();
		this.#loop.stop();
		this.#stop.abort();
	}

	async #begin(signal: AbortSignal): Promise<void> {
		const { schemaPass } = this.constraints;
		await this.#untilDone(() => schemaPass.begin());
		await this.life.within(this.#registry.ready(signal));
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
				this.#world.observer.failed(this.name, failure);
				await sleep(this.runtime.clock, 500);
			}
		}
	}

	/** Follows the deletions of all whom the picture shows. */
	#follow(signal: AbortSignal): void {
		const { info, service } = this.deployment;
		for (const other of this.#registry.deployments()) {
			const isFollowed = other.name === info.name || this.#followed.has(other.uid);
			if (!isFollowed && service.follows.includes(other.service)) {
				this.#followed.add(other.uid);
				const { context } = this.constraints;
				const take = (deletion: Deletion) => this.#loop.deletion(deletion);
				void followDeletions(context, other.uid, take, signal);
			}
		}
	}

	/** What the registry says, with holes. */
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
			findOwner: (...where) => seen(registry.findOwner(...where)),
			client: (uid) => {
				if (!registry.deployments().some((each) => each.uid === uid && isSeen(each))) {
					throw new ConnectError(`deployment ${uid} is not known`, Code.Unavailable);
				}
				registry.client(uid);
				return clientOf(this.#world, this, uid);
			},
			isDeleted: (uid) => registry.isDeleted(uid),
			onChange: (listener) => registry.onChange(listener),
		};
	}
}
