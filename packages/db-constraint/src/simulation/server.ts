import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Runtime, silentLogger, sleep } from "@plinth/runtime";
import { SkewedClock } from "@plinth/runtime/testing";
import type { StorageBackend } from "@plinth/storage";
import { type Constraints, createConstraints } from "../constraints.ts";
import type { Environment } from "../environment.ts";
import { followDeletions } from "../node/subscription.ts";
import { NodeLoop } from "../testing/node-loop.ts";
import type { Deployment } from "./deployment.ts";
import { Life } from "./life.ts";
import { clientOf } from "./network.ts";
import type { SimulatedSchema } from "./schemas.ts";
import { storageOf } from "./storage.ts";
import { backendOf } from "./truth.ts";
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
	readonly #stop = new AbortController();
	/** Deployments that are missing in this server's picture. */
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
		for (const other of world.deployments) {
			if (other !== deployment && world.happens(world.weather.missing)) {
				this.#missing.add(other.info.uid);
				void world.pass(random.next() * 60_000).then(() => this.#missing.delete(other.info.uid));
			}
		}
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

	/** Begins to serve. */
	start(): void {
		const { signal } = this.#stop;
		void this.constraints.run(signal);
		void this.#begin(signal);
		for (const other of this.#world.deployments) {
			if (this.deployment.follows(other)) {
				void followDeletions(
					this.constraints.context,
					other.info.uid,
					(deletion) => this.#loop.deletion(deletion),
					signal,
				);
			}
		}
	}

	/** Ends at once, whatever is under way. */
	crash(): void {
		this.life.end();
		this.#loop.stop();
		this.#stop.abort();
	}

	async #begin(signal: AbortSignal): Promise<void> {
		const { schemaPass } = this.constraints;
		for (const step of [() => schemaPass.begin(), () => schemaPass.complete(signal)]) {
			for (;;) {
				try {
					await step();
					break;
				} catch (failure) {
					this.#world.observer.failed(this.name, failure);
					await sleep(this.runtime.clock, 500);
				}
			}
			this.isOpen = true;
		}
	}

	#environment(): Environment {
		const world = this.#world;
		const { info } = this.deployment;
		const all = () =>
			world.deployments.map((each) => each.info).filter(({ uid }) => !this.#missing.has(uid));
		const find = (service: string, region: string) =>
			all().find((each) => each.service === service && each.region === region);
		return {
			self: info,
			deployments: all,
			find,
			findOwner: (group, service, region) =>
				find(service === "" ? info.service : (service ?? group), region),
			client: (uid) => {
				if (this.#missing.has(uid)) {
					throw new ConnectError(`deployment ${uid} is not known`, Code.Unavailable);
				}
				return clientOf(world, this, uid);
			},
			isDeleted: async () => false,
			onChange: () => () => {},
		};
	}
}
