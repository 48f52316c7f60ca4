import type { Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService } from "@plinth/proto";
import { decodeShared, encodeData, idOf, newUlid, TypeRegistry } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import { NotFound } from "@plinth/storage";
import { recordDeletedDeployments } from "../registry/deleted-deployments.ts";
import { deploymentOf } from "../registry/meta-picture.ts";
import { Deployment, metaTypes } from "../registry/meta-types.ts";
import { Life } from "./life.ts";
import { storageOf } from "./storage.ts";
import { backendOf, Truth } from "./truth.ts";
import type { World } from "./world.ts";

/** A server of the meta deployment: the resource API of meta types, and nothing else. */
export class MetaServer {
	readonly life = new Life();
	readonly transport: Transport;

	constructor(world: World, truth: Truth) {
		const { life } = this;
		const runtime = life.runtime(world.runtime, world.runtime.clock, world.random);
		const stored = storageOf(world, metaName, backendOf(world, truth, life, world.isLagging), life);
		const service = createResourceService({
			backend: recordDeletedDeployments(stored, runtime),
			registry: new TypeRegistry([...metaTypes]),
			authorizer: insecureAllowAll,
			runtime,
		});
		this.transport = createInProcessTransport(
			(router) => router.service(ResourceService, service),
			runtime,
		);
	}
}

const metaName = "meta-r1";

/** Keeps who is there: a storage that stays, and servers that come and go, as of all deployments. */
export class MetaDeployment {
	readonly name = metaName;
	servers: readonly MetaServer[] = [];
	readonly #world: World;
	readonly #truth: Truth;

	constructor(world: World) {
		this.#world = world;
		this.#truth = new Truth(world);
		this.#truth.onCommit((_mutations, { resources }) => {
			for (const resource of resources) {
				this.#saw(resource);
			}
		});
	}

	/** Starts a server. */
	start(): void {
		this.servers = [...this.servers, new MetaServer(this.#world, this.#truth)];
		this.#world.story.tell(this.name, () => "a server starts");
	}

	/** Ends a server at once. */
	crash(server: MetaServer): void {
		this.#world.story.tell(this.name, () => "a server crashes");
		this.servers = this.servers.filter((each) => each !== server);
		server.life.end();
	}

	#saw(resource: Resource | undefined): void {
		if (resource === undefined || resource.id?.type?.kind !== Deployment.type.kind) {
			return;
		}
		const { name, version } = deploymentOf(resource);
		const { announced } = this.#world.observer.records;
		if (announced.get(name) !== version) {
			announced.set(name, version);
			this.#world.story.tell(this.name, () => `${name} has the version ${version}`);
		}
	}

	/** An operator says whether others may talk to a deployment; nothing happens where it is not registered. */
	disable(name: string, disabled: boolean): void {
		try {
			const stored = this.#truth.store.read(idOf(Deployment, name));
			const data = { ...decodeShared(Deployment, stored).data, disabled };
			const next = {
				...stored,
				generation: newUlid(this.#world.runtime),
				data: encodeData(Deployment.schema, data),
			};
			this.#truth.commit([{ op: "put", resource: next, expectedVersion: stored.version }]);
			this.#world.story.tell(this.name, () => `${name} is ${disabled ? "disabled" : "enabled"}`);
		} catch (failure) {
			if (!(failure instanceof NotFound)) {
				throw failure;
			}
		}
	}
}
