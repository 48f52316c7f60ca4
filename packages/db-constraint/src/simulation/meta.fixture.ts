import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import { decodeShared, encodeData, idOf, resourceOf } from "@plinth/resource";
import { DeletedDeployment, Deployment, metaService, metaTypes } from "../registry/meta-types.ts";
import { deploymentOf, type RegisteredDeployment } from "../registry/registry-view.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { AuthoritativeStorage } from "./authoritative-storage.fixture.ts";
import type { SimulatedMetaDeployment, SimulatedMetaServer } from "./participants.fixture.ts";
import { ServerGroup } from "./server-group.fixture.ts";
import { ServerProcess, type SharedState } from "./server-process.fixture.ts";
import { SimulatedLeases } from "./simulated-leases.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

const region = "r1";
const name = `${metaService}-${region}`;
const descriptor = new ServiceDescriptor({
	types: metaTypes,
	foreignTypes: [],
	service: metaService,
});

/** See `SimulatedMetaDeployment`. Its servers run as those of other deployments do, at addresses that others know. */
export class MetaDeployment implements SimulatedMetaDeployment {
	readonly name = name;
	readonly addresses: readonly string[];
	readonly #sim: SimulationContext;
	readonly #authoritative: AuthoritativeStorage;
	readonly #group: ServerGroup<ServerProcess>;
	readonly #names = new Map<string, string>();
	/** The Deployments as they were registered first, by uid. */
	readonly #first = new Map<string, Resource>();
	/** The uids of Deployments that were deleted. */
	readonly #deleted = new Set<string>();

	constructor(sim: SimulationContext) {
		this.#sim = sim;
		this.addresses = sim.pick([["http://meta-1"], ["http://meta-1", "http://meta-2"]]);
		const leases = new SimulatedLeases(sim);
		const authoritative = new AuthoritativeStorage(sim, leases);
		this.#authoritative = authoritative;
		this.#group = new ServerGroup(sim, {
			...{ name, authoritative },
			create: () => this.#create({ authoritative, leases }),
		});
		authoritative.onCommit((_mutations, { resources }) => {
			for (const resource of resources) {
				this.#onCommitted(resource);
			}
		});
	}

	#create(shared: SharedState): ServerProcess {
		const isFree = (address: string) => this.#sim.serversAt(address).length === 0;
		const address = this.addresses.find(isFree);
		if (address === undefined) {
			throw new Error("a server of the meta deployment runs at each of its addresses");
		}
		const server: ServerProcess = new ServerProcess(this.#sim, {
			...shared,
			...{ name, service: metaService, region, address, version: "v1" },
			...{ descriptor, types: metaTypes, isMeta: true },
			onEnd: () => {
				this.crash(server);
				void this.#sim.wait(500).then(() => this.start());
			},
		});
		return server;
	}

	get servers(): readonly ServerProcess[] {
		return this.#group.running;
	}

	start(): void {
		if (this.servers.length < this.addresses.length) {
			this.#group.start();
		}
	}

	crash(server: SimulatedMetaServer): void {
		this.#group.crash(server);
	}

	#onCommitted(resource: Resource | undefined): void {
		if (resource?.id?.type?.kind === DeletedDeployment.type.kind) {
			const { uid } = decodeShared(DeletedDeployment, resource).data;
			this.#sim.trace.add(name, () => `${this.nameOf(uid)} is deleted`);
			this.#deleted.add(uid);
			this.#sim.observer.deploymentDeleted(uid);
			return;
		}
		if (resource === undefined || resource.id?.type?.kind !== Deployment.type.kind) {
			return;
		}
		const { uid, name: registered, version } = deploymentOf(resource);
		this.#names.set(uid, registered);
		this.#first.set(uid, this.#first.get(uid) ?? resource);
		const { announced } = this.#sim.observer.records;
		if (announced.get(uid) !== version) {
			announced.set(uid, version);
			this.#sim.trace.add(name, () => `${registered} has the version ${version}`);
		}
	}

	nameOf(uid: string): string | undefined {
		return this.#names.get(uid);
	}

	addressOf(deployment: string): string | undefined {
		return this.#registered().find((each) => each.name === deployment)?.address;
	}

	#registered(): readonly RegisteredDeployment[] {
		return [...this.#authoritative.all()].flatMap((resource) =>
			resource.id?.type?.kind === Deployment.type.kind ? deploymentOf(resource) : [],
		);
	}

	registered(): readonly string[] {
		return this.#registered().flatMap(({ service, uid }) => (service === metaService ? [] : uid));
	}

	async delete(uid: string): Promise<boolean> {
		const registered = this.#registered().find((each) => each.uid === uid);
		if (registered === undefined) {
			return this.#deleted.has(uid);
		}
		return this.#attempt(async (client) => {
			await client.delete({ id: { ...idOf(Deployment, registered.name), uid } });
		});
	}

	registerAgain(uid: string): Promise<boolean> {
		return this.#attempt(async (client) => {
			const data = this.#first.get(uid)?.data;
			const id = idOf(Deployment, this.nameOf(uid) ?? "");
			const resource = { ...resourceOf(Deployment, { id }), ...(data && { data }) };
			await client.write({ resource, createOnly: true }).catch((failure) => {
				if (ConnectError.from(failure).code !== Code.AlreadyExists) {
					throw failure;
				}
			});
		});
	}

	disabled(): readonly string[] {
		return this.#registered().flatMap((each) => (each.disabled ? each.name : []));
	}

	disable(deployment: string, disabled: boolean): Promise<boolean> {
		return this.#attempt(async (client) => {
			const { resource } = await client.read({ id: idOf(Deployment, deployment) });
			if (resource !== undefined) {
				const data = { ...decodeShared(Deployment, resource).data, disabled };
				await client.write({
					resource: { ...resource, data: encodeData(Deployment.schema, data) },
				});
				this.#sim.trace.add(name, () => `${deployment} is ${disabled ? "disabled" : "enabled"}`);
			}
		});
	}

	/** Calls one of the servers, as operators do. Returns whether it responds that this was done. */
	async #attempt(
		call: (client: Client<typeof ResourceService>) => Promise<void>,
	): Promise<boolean> {
		const server = this.servers[this.#sim.below(this.servers.length)];
		if (server?.client === undefined || !server.isOpen) {
			return false;
		}
		try {
			await server.lifetime.observe(call(server.client), () => new Error("the server crashed"));
			return true;
		} catch (failure) {
			this.#sim.observer.failed(name, failure);
			return false;
		}
	}

	problem(): string | undefined {
		const running = this.servers.map(({ address }) => address).sort();
		const recorded = [...this.#group.recorded()].sort();
		return running.join() === recorded.join()
			? undefined
			: `${name} names ${recorded} as its servers, and has ${running}`;
	}
}
