import type { Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService } from "@plinth/proto";
import { decodeShared, encodeData, idOf, newUlid, TypeRegistry } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import type { Runtime } from "@plinth/runtime";
import { CasFailure, NotFound } from "@plinth/storage";
import { recordDeletedDeployments } from "../registry/deleted-deployments.ts";
import { DeletedDeployment, Deployment, metaTypes } from "../registry/meta-types.ts";
import { deploymentOf } from "../registry/registry-view.ts";
import { AuthoritativeStorage, backendOf } from "./authoritative-storage.fixture.ts";
import { faultyStorage } from "./faulty-storage.fixture.ts";
import type { SimulatedMetaDeployment, SimulatedProcess } from "./participants.fixture.ts";
import { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** A server of the meta deployment: the resource API of meta types, and nothing else. */
class MetaServer implements SimulatedProcess {
	readonly name = metaName;
	readonly address = metaAddress;
	readonly lifetime = new Lifetime();
	readonly runtime: Runtime;
	readonly transport: Transport;

	constructor(sim: SimulationContext, authoritative: AuthoritativeStorage) {
		const { lifetime } = this;
		const runtime = lifetime.runtime(sim.runtime, sim.runtime.clock, sim.random);
		this.runtime = runtime;
		const stored = faultyStorage(
			sim,
			metaName,
			backendOf(sim, authoritative, lifetime, sim.isLagging),
			lifetime,
		);
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

/** The address of all servers of the meta deployment, one after the other. */
export const metaAddress = "http://meta-r1";

/** See `SimulatedMetaDeployment`: a storage that persists, and servers that start and crash. */
export class MetaDeployment implements SimulatedMetaDeployment {
	readonly name = metaName;
	servers: readonly SimulatedProcess[] = [];
	readonly #sim: SimulationContext;
	readonly #authoritative: AuthoritativeStorage;
	readonly #addresses = new Map<string, string>();
	readonly #names = new Map<string, string>();

	constructor(sim: SimulationContext) {
		this.#sim = sim;
		this.#authoritative = new AuthoritativeStorage(sim);
		this.#authoritative.onCommit((_mutations, { resources }) => {
			for (const resource of resources) {
				this.#onCommitted(resource);
			}
		});
	}

	start(): void {
		this.servers = [...this.servers, new MetaServer(this.#sim, this.#authoritative)];
		this.#sim.trace.add(this.name, () => "a server starts");
	}

	crash(server: SimulatedProcess): void {
		this.#sim.trace.add(this.name, () => "a server crashes");
		this.servers = this.servers.filter((each) => each !== server);
		server.lifetime.end();
	}

	#onCommitted(resource: Resource | undefined): void {
		if (resource?.id?.type?.kind === DeletedDeployment.type.kind) {
			const { uid } = decodeShared(DeletedDeployment, resource).data;
			this.#sim.trace.add(this.name, () => `${this.nameOf(uid)} is deleted`);
			this.#sim.observer.deploymentDeleted(uid);
			return;
		}
		if (resource === undefined || resource.id?.type?.kind !== Deployment.type.kind) {
			return;
		}
		const { uid, name, version, address } = deploymentOf(resource);
		this.#names.set(uid, name);
		this.#addresses.set(name, address);
		const { announced } = this.#sim.observer.records;
		if (announced.get(uid) !== version) {
			announced.set(uid, version);
			this.#sim.trace.add(this.name, () => `${name} has the version ${version}`);
		}
	}

	nameOf(uid: string): string | undefined {
		return this.#names.get(uid);
	}

	async delete(uid: string): Promise<boolean> {
		const name = this.nameOf(uid);
		if (name === undefined) {
			return false;
		}
		const { runtime } = this.#sim;
		const backend = backendOf(this.#sim, this.#authoritative, new Lifetime(), false);
		const stored = await backend.lookup(idOf(Deployment, name));
		if (stored?.id?.uid !== uid) {
			return false;
		}
		try {
			await recordDeletedDeployments(backend, runtime).commit([
				{ op: "delete", id: stored.id, expectedVersion: stored.version },
			]);
			return true;
		} catch (failure) {
			if (!(failure instanceof CasFailure)) {
				throw failure;
			}
			return false;
		}
	}

	addressOf(name: string): string | undefined {
		return this.#addresses.get(name);
	}

	disable(name: string, disabled: boolean): void {
		try {
			const stored = this.#authoritative.store.read(idOf(Deployment, name));
			const data = { ...decodeShared(Deployment, stored).data, disabled };
			const next = {
				...stored,
				generation: newUlid(this.#sim.runtime),
				data: encodeData(Deployment.schema, data),
			};
			this.#authoritative.commit([{ op: "put", resource: next, expectedVersion: stored.version }]);
			this.#sim.trace.add(this.name, () => `${name} is ${disabled ? "disabled" : "enabled"}`);
		} catch (failure) {
			if (!(failure instanceof NotFound)) {
				throw failure;
			}
		}
	}
}
