import type { Client, Transport } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { RegistryEntry } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Logger, type Runtime, silentLogger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { connectAnywhere } from "../protocol/server-address.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { DeploymentClients } from "./deployment-clients.ts";
import { type DeploymentConfiguration, ownAddresses } from "./deployment-configuration.ts";
import {
	type DeploymentInfo,
	type Environment,
	laterOf,
	type Sibling,
	takenOver,
} from "./environment.ts";
import { FollowedRegistry } from "./followed-registry.ts";
import { openMetaStorage } from "./meta-recovery.ts";
import type { IdentityOptions } from "./own-identity.ts";
import { OwnRecovery, type OwnRecoveryOptions } from "./own-recovery.ts";
import {
	type AnnouncementOptions,
	OwnRegistration,
	type RegistryState,
} from "./own-registration.ts";
import { RegistrationChecks } from "./registration-checks.ts";
import { RegistryReports } from "./registry-report.ts";
import { type OwnServers, RunningServers } from "./running-servers.ts";
import { UnusedRegistrations } from "./unused-registrations.ts";

/** The timeout of a call to a meta deployment. */
const callTimeoutMs = 5_000;

/** Options of a `DeploymentRegistry`. */
export interface DeploymentRegistryOptions {
	readonly deployment: DeploymentConfiguration;
	readonly descriptor: ServiceDescriptor;
	/** The storage of this deployment, without constraints. It keeps the identity. */
	readonly backend: StorageBackend;
	/** The incarnation that the storage reports. It changes with each restore. */
	readonly storageIncarnation?: string;
	/** The addresses of meta deployments, in the order of preference for the registration. */
	readonly metaAddresses: readonly string[];
	/** The resource service of this server, if this is a meta deployment, which registers with itself. */
	readonly ownMeta?: () => Client<typeof ResourceService>;
	/**
	 * Creates a transport to the internal listener of a deployment.
	 *
	 * @param announced - what the server at the address announces to other deployments, if it is of this deployment: its
	 *   certificate may be for that host name.
	 */
	readonly connect: (address: string, announced?: string) => Transport;
	/** The running servers of this deployment. */
	readonly ownServers: () => OwnServers;
	/** The uids of the deleted deployments of which this one has dropped the sources. */
	readonly dropped: () => ReadonlySet<string>;
	/** Whether the schema of this server is the active one now, whose version is announced. */
	readonly isActive: () => Promise<boolean>;
	readonly runtime: Runtime;
	readonly logger?: Logger;
}

/**
 * Service discovery: registers this deployment with the meta service, and follows all meta deployments that
 * it knows, from its configuration or from the registry view itself.
 *
 *     run ──▶ load the stored view ──▶ follow the sources ──▶ view ──▶ listeners, stored view
 *                                  └─▶ register, with retries ──▶ `ready`, once the registrar's snapshots are complete too
 *                                          └─ no meta deployment responds ──▶ `ready`, with the stored view
 *
 * If the meta service is unreachable, the last registry view stays, also across restarts. It proves nothing by what it
 * lacks: see `isComplete`. A server starts with it only if its storage has a uid, was not restored, and is no
 * unfinished successor.
 */
export class DeploymentRegistry implements Environment {
	readonly #options: DeploymentRegistryOptions;
	readonly #identity: IdentityOptions;
	readonly #registry: FollowedRegistry;
	readonly #clients: DeploymentClients;
	readonly #registration: OwnRegistration;
	readonly #checks: RegistrationChecks;
	readonly #reports: RegistryReports;
	readonly #recovery: OwnRecovery | undefined;
	readonly #unused: UnusedRegistrations;
	readonly #listeners = new Set<() => void>();
	/** Aborts when this registry no longer runs. */
	readonly #end = new AbortController();

	constructor(options: DeploymentRegistryOptions) {
		this.#options = options;
		const { deployment, descriptor, metaAddresses, ownMeta, ownServers } = options;
		const { backend, storageIncarnation, runtime, logger = silentLogger } = options;
		const { dropped, isActive } = options;
		if (ownMeta === undefined && metaAddresses.length === 0) {
			throw new Error("a deployment needs the address of a meta deployment");
		}
		const connect = connectAnywhere(options.connect);
		const isMeta = ownMeta !== undefined;
		const onChange = () => this.#changed();
		const running = new RunningServers();
		const identity = { backend, runtime, ...(storageIncarnation && { storageIncarnation }) };
		const shared = { runtime, logger, callTimeoutMs };
		const registry = new FollowedRegistry({
			...{ ...shared, deployment, backend, metaAddresses, ownMeta, connect },
			...{ dropped, running, onChange },
			...(storageIncarnation && { storageIncarnation }),
		});
		const { view, sources } = registry;
		const clients = new DeploymentClients({
			...{ view, running, ownServers, connect, runtime },
			own: ownAddresses(deployment),
			onServers: () => registry.stored.changed(),
			onOlderServers: () => registry.stored.replaced(),
			onDeleted: (uid, by) => registration.refused(uid, by),
			onSucceeded: (uid, successorUid) => registration.becomeSucceeded(uid, successorUid),
		});
		const registration = new OwnRegistration({
			...{ ...shared, deployment, descriptor, identity, registry, isMeta, onChange },
			isRunningAt: (address) => clients.isRunningAt(address),
			isActive,
		});
		this.#identity = identity;
		this.#registry = registry;
		this.#clients = clients;
		this.#registration = registration;
		this.#checks = new RegistrationChecks({
			...{ registration, registry, isMeta, runtime, logger },
			end: this.#end.signal,
		});
		this.#reports = new RegistryReports({
			...{ runtime, logger, report: (meta) => registration.giveBackTo(meta) },
			registerAgain: (servers) => registration.registerAgain(servers),
			// What this meta deployment itself knows is stored already.
			sources: { recovering: () => registry.othersRecovering() },
		});
		this.#recovery =
			ownMeta &&
			new OwnRecovery({
				...{ backend, runtime, logger, client: ownMeta },
				...recoveryBy(registry, deployment),
			});
		this.#unused = new UnusedRegistrations({ ...shared, view, sources, identity });
	}

	/** The state of the registration of this deployment. */
	get state(): RegistryState {
		return this.#registration.state;
	}

	/** The version that operators want; empty if they leave it to the configuration. */
	get wantedVersion(): string {
		return this.#registration.own?.wantedVersion ?? "";
	}

	get self(): DeploymentInfo {
		return this.#registration.self;
	}

	get isComplete(): boolean {
		return this.#registry.sources.isComplete;
	}

	/** The deployments for which this meta deployment waits since its storage was restored, as operators know them. */
	get awaited(): readonly string[] {
		return this.#recovery?.awaited ?? [];
	}

	/** What is wrong with the imports of this service: those of versions in which no deployment serves it. */
	get importProblems(): readonly string[] {
		const { descriptor } = this.#options;
		return descriptor.imports(this.self.version).flatMap(({ service, version }) => {
			const served = this.#registry.view.versionsOf(service);
			return version === "" || served === undefined || served.includes(version)
				? []
				: `this service imports ${service} ${version}, which no deployment serves: ${service} has ${served.join(", ") || "no version"}`;
		});
	}

	/** When the registry view was up to date last, if some meta deployment can't be followed now. */
	get outdatedSince(): Date | undefined {
		return this.#registry.outdatedSince;
	}

	deployments(): readonly DeploymentInfo[] {
		const { self } = this;
		const others = [...this.#registry.view.deployments().values()].filter(
			({ uid }) => uid !== self.uid,
		);
		return self.uid === "" ? others : [self, ...others];
	}

	byUid(uid: string): DeploymentInfo | undefined {
		const { self } = this;
		return uid === self.uid && uid !== "" ? self : this.#registry.view.deployments().get(uid);
	}

	successorOf(uid: string): DeploymentInfo | undefined {
		const { self } = this;
		const known = this.#registry.view.successorOf(uid);
		if (!takenOver(self).includes(uid)) {
			return known;
		}
		return known === undefined || laterOf<DeploymentInfo>(self, known).uid === self.uid
			? self
			: known;
	}

	find(service: string, region: string): DeploymentInfo | undefined {
		const { self } = this;
		return service === self.service && region === self.region
			? self
			: this.#registry.view.find(service, region);
	}

	findOwner(
		group: string,
		service: string | undefined,
		region: string,
	): DeploymentInfo | undefined {
		const { self } = this;
		const name =
			service === "" ? self.service : (service ?? this.#registry.view.serviceOfGroup(group));
		return name === undefined ? undefined : this.find(name, region || self.region);
	}

	imports(uid: string, service: string): boolean | undefined {
		const known = this.byUid(uid);
		return known && this.#registry.view.importsOf(known.service, known.version)?.has(service);
	}

	client(uid: string): Client<typeof SchemaMixinService> {
		return this.#clients.of(uid);
	}

	learnServers(uid: string, endpoints: string): void {
		this.#clients.learnServers(uid, endpoints);
	}

	/** Some server of this deployment has stored what it knows of another deployment: it may be the only one that was told. */
	followStored(entry: RegistryEntry): void {
		this.#clients.followStored(entry);
	}

	siblings(): readonly Sibling[] {
		return this.#clients.siblings();
	}

	isDeleted(uid: string): Promise<boolean> {
		return this.#registry.isDeleted(uid);
	}

	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/**
	 * Resolves once this deployment is registered and the first registry view is complete: it contains the snapshots
	 * of the registrar of this deployment and of every other reachable meta deployment. If no meta deployment can be
	 * reached, it resolves with the stored view. Rejects when the signal aborts.
	 */
	async ready(signal: AbortSignal): Promise<void> {
		while (!this.#registration.isReady) {
			signal.throwIfAborted();
			await new Promise<void>((resolve, reject) => {
				const onAbort = () => {
					stop();
					reject(signal.reason);
				};
				const stop = this.onChange(() => {
					stop();
					signal.removeEventListener("abort", onAbort);
					resolve();
				});
				signal.addEventListener("abort", onAbort, { once: true });
			});
		}
	}

	/**
	 * Announces the version that this deployment serves from now on, and that it has established the references
	 * of its predecessor.
	 *
	 * @param options - as those of `OwnRegistration`.
	 * @throws ConnectError if its registrar does not accept it, or another schema is active. Retry.
	 */
	announce(version: string, options: AnnouncementOptions = {}): Promise<void> {
		return this.#registration.announce(version, options);
	}

	/** Where other deployments that know none of its servers look for this one; empty before it is registered. */
	get registeredAddress(): string {
		return this.#registration.own?.address ?? "";
	}

	/** Registers another address. @throws ConnectError if its registrar does not accept it. Retry. */
	announceAddress(address: string): Promise<void> {
		return this.#registration.announceAddress(address);
	}

	/** Another server of this deployment has given up its uid. */
	giveUp(): void {
		this.#registration.giveUp();
	}

	/**
	 * Prepares the storage: that of a meta deployment, if it was restored. Must complete before others can call this server.
	 *
	 * @throws StorageError if the storage can't be read or written.
	 */
	async open(): Promise<void> {
		const { ownMeta, deployment } = this.#options;
		if (ownMeta !== undefined) {
			await openMetaStorage(this.#identity, deployment);
		}
	}

	/**
	 * Loads the stored view, so that deployments are known before `run`, and whether they were deleted; a meta deployment
	 * does not know the latter yet. Never rejects.
	 */
	load(): Promise<void> {
		return this.#registry.load();
	}

	/** Registers and follows, until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		signal.addEventListener("abort", () => this.#end.abort(), { once: true });
		await this.load();
		const following = this.#registry.follow(signal);
		this.#changed();
		await Promise.all([
			following,
			this.#registration.run(signal),
			this.#registry.stored.run(signal),
			this.#recovery?.run(signal),
		]);
	}

	#changed(): void {
		this.#registry.stored.changed();
		this.#registry.addFound();
		this.#clients.removeUnknown();
		const { own, hasEnded } = this.#registration;
		if (own !== undefined && !hasEnded) {
			this.#reports.begin(this.#end.signal);
			void this.#unused.delete(own, this.#end.signal);
		}
		this.#recovery?.changed();
		this.#checks.begin();
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}
}

/** What the recovery of this meta deployment needs to know of the others. */
function recoveryBy(
	{ view, sources }: FollowedRegistry,
	{ address }: DeploymentConfiguration,
): Pick<OwnRecoveryOptions, "known" | "isDeleted" | "hasDeleted" | "areOthersRead" | "display"> {
	return {
		known: () => view.deployments().values(),
		isDeleted: (uid) => view.isDeleted(uid),
		hasDeleted: () => view.hasDeleted(address),
		areOthersRead: () => sources.isCompleteBut(address),
		display: (uid) => `${view.deployments().get(uid)?.name ?? "deployment"} (${uid})`,
	};
}
