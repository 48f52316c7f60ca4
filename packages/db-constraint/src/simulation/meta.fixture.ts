import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import { decodeShared, encodeData, idOf, resourceOf } from "@plinth/resource";
import { takenOver } from "../registry/environment.ts";
import { DeletedDeployment, Deployment, metaService, metaTypes } from "../registry/meta-types.ts";
import { deploymentOf, type RegisteredDeployment } from "../registry/registry-view.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { deploymentRecord } from "../succession/deployment-record.ts";
import { AuthoritativeStorage } from "./authoritative-storage.fixture.ts";
import type {
	KnownDeployments,
	SimulatedMetaDeployment,
	SimulatedMetaServer,
} from "./participants.fixture.ts";
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
	/** The uids of the Deployments of whose deletion it has the record. */
	readonly #deleted = new Set<string>();
	/** The same, with those that a restore has undone. */
	readonly #everDeleted = new Set<string>();
	/**
	 * The uids of deployments that all others knew, or knew to be deleted, when it was restored, and that none of them has
	 * forgotten in a restore of its own before anyone has reported.
	 */
	#known: KnownDeployments = { stored: new Set(), deleted: new Set() };
	/** The incarnations of storages that restores have replaced. */
	readonly #replacedStorages = new Set<string>();
	/** Resolves once its storage has its own uid. */
	readonly #ownUid = Promise.withResolvers<void>();
	/** Its last registration of itself. */
	#itself: Pick<RegisteredDeployment, "uid" | "recovering"> | undefined;

	constructor(sim: SimulationContext) {
		this.#sim = sim;
		this.addresses = sim.pick([["http://meta-1"], ["http://meta-1", "http://meta-2"]]);
		const leases = new SimulatedLeases(sim);
		const authoritative = new AuthoritativeStorage(sim, leases, sim.restoresMeta);
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
		const record = resource?.id?.name === deploymentRecord ? recordOf(resource).record : undefined;
		if (record?.case === "deployment" && record.value.uid !== "") {
			this.#ownUid.resolve();
		}
		if (resource?.id?.type?.kind === DeletedDeployment.type.kind) {
			const { uid } = decodeShared(DeletedDeployment, resource).data;
			this.#sim.trace.add(name, () => `${this.nameOf(uid)} is deleted`);
			this.#deleted.add(uid);
			if (!this.#everDeleted.has(uid)) {
				this.#everDeleted.add(uid);
				this.#sim.observer.deploymentDeleted(uid);
			}
		} else if (resource?.id?.type?.kind === Deployment.type.kind) {
			const registered = deploymentOf(resource);
			this.#first.set(registered.uid, this.#first.get(registered.uid) ?? resource);
			this.#registers(registered);
		}
	}

	#registers(deployment: RegisteredDeployment): void {
		const { uid, name: registered, version, service, recovering } = deployment;
		this.#names.set(uid, registered);
		if (this.#isAbandoned(deployment)) {
			void this.#deleteAbandoned(uid);
		}
		const { announced } = this.#sim.observer.records;
		if (announced.get(uid) !== version) {
			announced.set(uid, version);
			this.#sim.trace.add(name, () => `${registered} has the version ${version}`);
		}
		const isSame = this.#itself?.uid === uid && this.#itself.recovering === recovering;
		if (service === metaService && !isSame) {
			this.#itself = { uid, recovering };
			this.#sim.trace.add(name, () => (recovering ? "is recovering" : "is complete"));
			const problem = recovering ? undefined : this.#forgotten();
			if (problem !== undefined) {
				this.#sim.observer.violation(4, `${name} is complete, and ${problem}`);
			}
		}
	}

	/** What it lacks of what all deployments knew before it was restored. */
	#forgotten(): string | undefined {
		const current = new Set(this.#uids().values());
		const registered = new Set(this.#registered().map(({ uid }) => uid));
		for (const uid of this.#known.stored) {
			if (current.has(uid) && !registered.has(uid) && !this.#everDeleted.has(uid)) {
				return `has forgotten ${this.nameOf(uid)} (${uid})`;
			}
		}
		for (const uid of this.#known.deleted) {
			if (!this.#deleted.has(uid)) {
				return `has forgotten the deletion of ${this.nameOf(uid)} (${uid})`;
			}
		}
		return undefined;
	}

	/** The deployments that are registered under another uid than their storage has, or not at all. */
	#unregistered(): string | undefined {
		const registered = new Set(this.#registered().map(({ uid }) => uid));
		const missing = [...this.#uids()].find(([, uid]) => !registered.has(uid));
		return missing && `lacks ${missing.join(" ")}`;
	}

	/** The uids that the storages of deployments have, by name. */
	#uids(): ReadonlyMap<string, string> {
		const running = this.#sim.deployments.filter(({ isGone, info }) => !isGone && info.uid !== "");
		return new Map(running.map(({ info }) => [info.name, info.uid]));
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
		return this.#registered().flatMap((each) =>
			each.service === metaService || this.#isGone(each) ? [] : each.uid,
		);
	}

	/** Whether it is registered by a deployment that has no servers any longer: then only operators delete it. */
	#isGone({ service, region }: RegisteredDeployment): boolean {
		return this.#sim.deployments.some(
			({ isGone, info }) => isGone && info.service === service && info.region === region,
		);
	}

	get whenRegistered(): Promise<void> {
		return this.#ownUid.promise;
	}

	/** The present registration of this deployment itself, which has taken over those before the last restores. */
	get #own(): RegisteredDeployment | undefined {
		const own = this.#registered().filter((each) => each.service === metaService);
		const before = new Set(own.flatMap(takenOver));
		return own.find(({ uid }) => !before.has(uid));
	}

	halt(): void {
		this.#group.halt();
	}

	resume(): void {
		this.#group.resume();
	}

	backUp(): () => void {
		this.#sim.trace.add(name, () => "is backed up");
		const backup = this.#authoritative.backUp();
		return () => {
			this.#sim.trace.add(name, () => "is restored from the backup");
			const before = [...this.#deleted];
			this.#known = this.#sim.deployments
				.filter(({ isGone }) => !isGone)
				.map((each) => each.knownDeployments())
				.reduce(knownToBoth);
			this.#deleted.clear();
			this.#authoritative.restore(backup);
			for (const resource of backup) {
				if (resource.id?.type?.kind === DeletedDeployment.type.kind) {
					this.#deleted.add(decodeShared(DeletedDeployment, resource).data.uid);
				} else if (resource.id?.type?.kind === Deployment.type.kind) {
					const { uid, version } = deploymentOf(resource);
					this.#sim.observer.records.announced.set(uid, version);
				}
			}
			for (const uid of before) {
				void this.#deleteAgain(uid);
			}
			void this.#deleteGone();
		};
	}

	otherRestored(known: KnownDeployments): void {
		// It may be the first to report, or the only one. What another one has reported before is stored.
		if (!this.#hasReport) {
			this.#known = knownToBoth(this.#known, known);
		}
	}

	/** Whether anyone has reported since it was restored, and it is not complete. */
	get #hasReport(): boolean {
		return [...this.#authoritative.all()].some((resource) => {
			const isRecord = resource.id?.type?.kind === ResourceShadow.type.kind;
			const record = isRecord ? recordOf(resource).record : undefined;
			return record?.case === "recovery" && record.value.reportedBy.length > 0;
		});
	}

	storageReplaced(incarnation: string): void {
		this.#replacedStorages.add(incarnation);
		for (const registered of this.#registered().filter((each) => this.#isAbandoned(each))) {
			void this.#deleteAbandoned(registered.uid);
		}
	}

	/** Whether a message has registered this for a storage that was replaced, and that had never recorded the uid. */
	#isAbandoned({ uid, storageIncarnation }: RegisteredDeployment): boolean {
		const { identities } = this.#sim.observer.records;
		const isUsed = [...identities.values()].some((each) => each.has(uid));
		return this.#replacedStorages.has(storageIncarnation) && !isUsed;
	}

	/** An operator deletes a Deployment that has no servers, and never had any. */
	async #deleteAbandoned(uid: string): Promise<void> {
		do {
			await this.#sim.wait(30_000);
		} while (!(await this.delete(uid)));
	}

	/** An operator who has deleted a Deployment deletes it again, if nobody knew of the deletion. */
	async #deleteAgain(uid: string): Promise<void> {
		while (!this.#deleted.has(uid)) {
			if (this.#own?.recovering === false) {
				await this.delete(uid);
			}
			await this.#sim.wait(5_000);
		}
	}

	/** Operators delete the Deployments of those that no longer exist, for whose reports it would wait. */
	async #deleteGone(): Promise<void> {
		const restored = this.#own?.uid;
		while (this.#own?.uid === restored || this.#own?.recovering) {
			for (const { uid } of this.#registered().filter((each) => this.#isGone(each))) {
				await this.delete(uid);
			}
			await this.#sim.wait(5_000);
		}
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
		if (running.join() !== recorded.join()) {
			return `${name} names ${recorded} as its servers, and has ${running}`;
		}
		if (this.#itself?.recovering) {
			return `${name} was restored, and is not complete`;
		}
		const deleted = this.#registered().find(({ uid }) => this.#deleted.has(uid));
		if (deleted !== undefined) {
			return `${name} has ${deleted.name} (${deleted.uid}), which was deleted`;
		}
		const lacks = this.#unregistered();
		return lacks && `${name} ${lacks}`;
	}
}

function knownToBoth(one: KnownDeployments, other: KnownDeployments): KnownDeployments {
	return {
		stored: one.stored.intersection(other.stored),
		deleted: one.deleted.intersection(other.deleted),
	};
}
