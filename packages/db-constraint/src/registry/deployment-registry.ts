import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { RegistryEntry } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Backoff, type Logger, type Runtime, silentLogger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import { takenOverBy } from "../protocol/dropped-deployments.ts";
import {
	decodeEndpoints,
	encodeEndpoints,
	versionOfEndpoints,
} from "../protocol/endpoints-header.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { createBalancedTransport } from "./balanced-transport.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { type DeploymentInfo, type Environment, laterOf, takenOver } from "./environment.ts";
import { anyOf, unavailable } from "./meta-calls.ts";
import { openMetaStorage } from "./meta-recovery.ts";
import type { MetaSource } from "./meta-source.ts";
import { MetaSources, type RecoveringMeta } from "./meta-sources.ts";
import { metaService } from "./meta-types.ts";
import { giveUpUid, type IdentityOptions, mayStartAlone, readIdentity } from "./own-identity.ts";
import { OwnRecovery } from "./own-recovery.ts";
import {
	DeploymentDeleted,
	DeploymentSucceeded,
	isDeletedAt,
	type Registration,
	refresh,
	register,
	updateDeployment,
} from "./registration.ts";
import {
	giveBack,
	type RegistryReport,
	RegistryReports,
	reportOf,
	withDeployment,
} from "./registry-report.ts";
import { deploymentOf, metaOf, type RegisteredDeployment, RegistryView } from "./registry-view.ts";
import { type NamedServers, RunningServers } from "./running-servers.ts";
import { StoredView, storedServers } from "./stored-view.ts";
import { UnusedRegistrations } from "./unused-registrations.ts";

/** Options of an `DeploymentRegistry`. */
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
	/** Creates a transport to the internal listener of a deployment. */
	readonly connect: (address: string) => Transport;
	/** The running servers of this deployment. Default: they are not known. */
	readonly ownServers?: () => NamedServers;
	/** The uids of the deleted deployments of which this one has dropped the sources. Default: none. */
	readonly dropped?: () => ReadonlySet<string>;
	readonly runtime: Runtime;
	readonly logger?: Logger;
	/** The timeout of a call to a meta deployment, in milliseconds. Default: 5 s. */
	readonly callTimeoutMs?: number;
}

/** The state of the registration of this deployment. */
export type RegistryState =
	/** It serves by the stored registry view if it has one: see `isReady`. */
	| { readonly kind: "registering"; readonly lastProblem: string }
	| { readonly kind: "registered" }
	/** It has given up its uid, which was deleted: it must not serve writes, and registers again with its next start. */
	| { readonly kind: "deleted"; readonly reason: string }
	/** Another storage has taken over: it must not serve writes, and does not start again while that is registered. */
	| { readonly kind: "succeeded"; readonly reason: string };

const registerAgain = { baseMs: 250, maxMs: 5_000 } as const;

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
	readonly #logger: Logger;
	readonly #callTimeoutMs: number;
	readonly #view = new RegistryView();
	readonly #sources: MetaSources;
	readonly #listeners = new Set<() => void>();
	readonly #clients = new Map<string, Client<typeof SchemaMixinService>>();
	readonly #running = new RunningServers();
	readonly #stored: StoredView;
	#loaded: Promise<void> | undefined;
	readonly #reports: RegistryReports;
	readonly #recovery: OwnRecovery | undefined;
	readonly #unused: UnusedRegistrations;
	#registration: Registration | undefined;
	#state: RegistryState = { kind: "registering", lastProblem: "" };
	/** When the stored view was up to date, if it was loaded. */
	#storedAsOf: Date | undefined;
	/** Whether this server has started with the stored view, and has not been registered since. */
	#isAlone = false;
	#announced: string | undefined;
	#established = false;
	#isCheckingDeletion = false;
	/** Aborts when this registry no longer runs. */
	readonly #end = new AbortController();

	constructor(options: DeploymentRegistryOptions) {
		this.#options = options;
		this.#logger = options.logger ?? silentLogger;
		this.#callTimeoutMs = options.callTimeoutMs ?? 5_000;
		if (options.ownMeta === undefined && options.metaAddresses.length === 0) {
			throw new Error("a deployment needs the address of a meta deployment");
		}
		const { backend, runtime } = options;
		const shared = { view: this.#view, runtime, logger: this.#logger };
		this.#sources = new MetaSources({ ...shared, onChange: () => this.#changed() });
		this.#reports = new RegistryReports({
			...{ runtime, logger: this.#logger, report: (meta) => this.#report(meta) },
			// What this meta deployment itself knows is stored already.
			sources: { recovering: () => this.#othersRecovering() },
		});
		this.#recovery = options.ownMeta && this.#ownRecovery(options.ownMeta);
		this.#unused = new UnusedRegistrations({
			...{ ...shared, sources: this.#sources, identity: this.#identity },
			callTimeoutMs: this.#callTimeoutMs,
		});
		this.#stored = new StoredView({
			...{ ...shared, backend, running: this.#running },
			upToDateMs: () => this.#sources.upToDateMs(),
			followed: () => this.#sources.followed(),
		});
	}

	/** The state of the registration of this deployment. */
	get state(): RegistryState {
		return this.#state;
	}

	/** The version that operators want; empty if they leave it to the configuration. */
	get wantedVersion(): string {
		return this.#own?.wantedVersion ?? "";
	}

	get self(): DeploymentInfo {
		const { deployment } = this.#options;
		const own = this.#own;
		return {
			uid: own?.uid ?? "",
			name: own?.name ?? deployment.name ?? `${deployment.service}-${deployment.region}`,
			service: deployment.service,
			region: deployment.region,
			version: this.#announced ?? own?.version ?? deployment.version,
			disabled: own?.disabled ?? false,
			predecessorUid: own?.predecessorUid ?? "",
			otherPredecessorUids: own?.otherPredecessorUids ?? [],
			established: this.#established || (own?.established ?? true),
		};
	}

	get isComplete(): boolean {
		return this.#sources.isComplete;
	}

	/** The deployments for which this meta deployment waits since its storage was restored, as operators know them. */
	get awaited(): readonly string[] {
		return this.#recovery?.awaited ?? [];
	}

	/** What is wrong with the imports of this service: those of versions in which no deployment serves it. */
	get importProblems(): readonly string[] {
		const { descriptor } = this.#options;
		return descriptor.imports(this.self.version).flatMap(({ service, version }) => {
			const served = this.#view.versionsOf(service);
			return version === "" || served === undefined || served.includes(version)
				? []
				: `this service imports ${service} ${version}, which no deployment serves: ${service} has ${served.join(", ") || "no version"}`;
		});
	}

	/** When the registry view was up to date last, if some meta deployment can't be followed now. */
	get outdatedSince(): Date | undefined {
		if (!this.isComplete) {
			return this.#storedAsOf;
		}
		const ms = this.#sources.upToDateMs() ?? 0;
		return ms < this.#options.runtime.clock.now() ? new Date(ms) : undefined;
	}

	deployments(): readonly DeploymentInfo[] {
		const { self } = this;
		const others = [...this.#view.deployments().values()].filter(({ uid }) => uid !== self.uid);
		return self.uid === "" ? others : [self, ...others];
	}

	byUid(uid: string): DeploymentInfo | undefined {
		const { self } = this;
		return uid === self.uid && uid !== "" ? self : this.#view.deployments().get(uid);
	}

	successorOf(uid: string): DeploymentInfo | undefined {
		const { self } = this;
		const known = this.#view.successorOf(uid);
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
			: this.#view.find(service, region);
	}

	findOwner(
		group: string,
		service: string | undefined,
		region: string,
	): DeploymentInfo | undefined {
		const { self } = this;
		const name = service === "" ? self.service : (service ?? this.#view.serviceOfGroup(group));
		return name === undefined ? undefined : this.find(name, region || self.region);
	}

	imports(uid: string, service: string): boolean | undefined {
		const known = this.byUid(uid);
		return known && this.#view.importsOf(known.service, known.version)?.has(service);
	}

	client(uid: string): Client<typeof SchemaMixinService> {
		const known = this.#view.deployments().get(uid);
		if (known === undefined || known.disabled) {
			const what = known === undefined ? "is not known" : `(${known.name}) is disabled`;
			throw new ConnectError(`deployment ${uid} ${what}`, Code.Unavailable);
		}
		const before = this.#clients.get(uid);
		if (before !== undefined) {
			return before;
		}
		const client = createClient(SchemaMixinService, this.#transportTo(known));
		this.#clients.set(uid, client);
		return client;
	}

	#transportTo(deployment: RegisteredDeployment): Transport {
		const { uid } = deployment;
		const { connect, runtime } = this.#options;
		const registered = () => this.#view.deployments().get(uid)?.address ?? deployment.address;
		return createBalancedTransport({
			addresses: () => ({ running: this.#running.of(uid).addresses, registered: registered() }),
			connect,
			onEndpoints: (value) => this.learnServers(uid, value),
			ownEndpoints: () => {
				const { addresses, version } = this.#ownServers();
				return encodeEndpoints(new Set([...addresses, this.#options.deployment.address]), version);
			},
			onDeleted: (deleted) => this.#refused(deleted, deployment),
			onSucceeded: (uid, successorUid) => this.#succeeded(uid, successorUid),
			clock: runtime.clock,
		});
	}

	learnServers(uid: string, endpoints: string): void {
		const registered = this.#view.deployments().get(uid)?.address;
		if (registered === undefined) {
			return;
		}
		const addresses = decodeEndpoints(endpoints, registered);
		if (this.#running.learn(uid, { addresses, version: versionOfEndpoints(endpoints) })) {
			this.#stored.changed();
		}
	}

	/** Some server of this deployment has stored what it knows of another deployment: it may be the only one that was told. */
	followStored(entry: RegistryEntry): void {
		const uid = entry.resource?.id?.uid ?? "";
		if (this.#running.takeStored(uid, storedServers(entry))) {
			this.#stored.changed();
		}
	}

	siblings(): readonly Client<typeof SchemaMixinService>[] {
		const { connect, deployment } = this.#options;
		return this.#ownServers()
			.addresses.filter((address) => address !== deployment.address)
			.map((address) => createClient(SchemaMixinService, connect(address)));
	}

	#isRunningAt(address: string): boolean {
		return this.#ownServers().addresses.includes(address);
	}

	#ownServers(): NamedServers {
		return this.#options.ownServers?.() ?? { addresses: [], version: "" };
	}

	async isDeleted(uid: string): Promise<boolean> {
		if (this.#dropped.has(uid)) {
			return true;
		}
		const isDeleted = await this.#hasDeletionRecord(uid);
		const restored = this.#sources.recovering().map(({ meta }) => `${meta.name} (${meta.uid})`);
		if (restored.length > 0) {
			// It may have a successor that was forgotten, or the record of the deletion was.
			throw unavailable(
				`whether deployment ${uid} was deleted is not known: these meta deployments were restored and are not complete yet: ${restored.join(", ")}`,
			);
		}
		return isDeleted;
	}

	#hasDeletionRecord(uid: string): Promise<boolean> {
		return isDeletedAt({ metas: this.#sources.groups, callTimeoutMs: this.#callTimeoutMs }, uid);
	}

	get #dropped(): ReadonlySet<string> {
		return this.#options.dropped?.() ?? new Set();
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
		while (!this.#isReady()) {
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
	 * @throws ConnectError if its registrar does not accept it. Retry.
	 */
	async announce(version: string): Promise<void> {
		if (this.#registration === undefined) {
			throw unavailable("the deployment is not registered yet");
		}
		const { predecessorUid } = this.#registration.registered;
		const fields = { currentVersion: version, established: predecessorUid !== "" };
		await this.#update(this.#registration, fields);
		this.#announced = version;
		this.#established = true;
		this.#changed();
	}

	/** Where other deployments that know none of its servers look for this one; empty before it is registered. */
	get registeredAddress(): string {
		return this.#own?.address ?? "";
	}

	/** Registers another address. @throws ConnectError if its registrar does not accept it. Retry. */
	async announceAddress(address: string): Promise<void> {
		if (this.#registration !== undefined) {
			await this.#update(this.#registration, { address });
		}
	}

	/** Updates the Deployment at any server of the registrar. */
	async #update(
		{ registrar, ...registration }: Registration,
		fields: Parameters<typeof updateDeployment>[1],
	): Promise<void> {
		// It may have another name since its registrar was restored.
		const registered = this.#own ?? registration.registered;
		await anyOf(this.#sources.serversWith(registrar.address), (server) =>
			updateDeployment({ registered, registrar: server }, fields, this.#callTimeoutMs),
		);
	}

	/** Another server of this deployment has given up its uid. */
	giveUp(): void {
		if (this.#registration !== undefined) {
			this.#becomeDeleted();
		}
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
		this.#loaded ??= this.#load();
		return this.#loaded;
	}

	async #load(): Promise<void> {
		const { metaAddresses, ownMeta } = this.#options;
		try {
			this.#storedAsOf = await this.#stored.load(metaAddresses);
		} catch (failure) {
			this.#logger.warn({ err: failure }, "the stored registry view can't be read");
		}
		if (ownMeta === undefined) {
			this.#addConfigured();
		}
	}

	/** Registers and follows, until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		signal.addEventListener("abort", () => this.#end.abort(), { once: true });
		await this.load();
		this.#addConfigured();
		const following = this.#sources.run(signal);
		this.#changed();
		await Promise.all([
			following,
			this.#register(signal),
			this.#stored.run(signal),
			this.#recovery?.run(signal),
		]);
	}

	#ownRecovery(client: () => Client<typeof ResourceService>): OwnRecovery {
		const { backend, runtime, deployment } = this.#options;
		return new OwnRecovery({
			...{ backend, runtime, client, logger: this.#logger },
			known: () => this.#view.deployments().values(),
			isDeleted: (uid) => this.#view.isDeleted(uid),
			areOthersRead: () => this.#sources.isCompleteBut(deployment.address),
			display: (uid) => `${this.#view.deployments().get(uid)?.name ?? "deployment"} (${uid})`,
		});
	}

	#othersRecovering(): readonly RecoveringMeta[] {
		const { address } = this.#options.deployment;
		const isOwn = ({ servers }: RecoveringMeta) =>
			this.#options.ownMeta !== undefined && servers.some((each) => each.address === address);
		return this.#sources.recovering().filter((each) => !isOwn(each));
	}

	/**
	 * What this deployment knows of the registry of a meta deployment: it counts as having reported once any of its servers
	 * has, so the report has what others of them have stored too.
	 *
	 * @throws StorageError if the storage can't be read.
	 */
	async #knownOf(servers: readonly MetaSource[]): Promise<RegistryReport> {
		const followed = this.#sources.groups.flat().map(({ address }) => address);
		return reportOf(await this.#stored.withStored(followed), servers, this.#dropped);
	}

	/** Gives a restored meta deployment back what is known, and registers with it again if it is the registrar. */
	async #report({ meta, servers }: RecoveringMeta): Promise<void> {
		const { deployment, descriptor } = this.#options;
		const { self } = this;
		const own = this.#own;
		const registrar = this.#registration?.registrar.address;
		const isRegistrar = servers.some(({ address }) => address === registrar);
		const known = await this.#knownOf(servers);
		const report = isRegistrar && own !== undefined ? withDeployment(known, own) : known;
		await giveBack(servers, meta, self, report, this.#callTimeoutMs);
		if (!isRegistrar || this.#registration === undefined) {
			return;
		}
		// What it has announced may be newer than what others knew.
		const registered = this.#own ?? this.#registration.registered;
		const isRunningAt = (address: string) => this.#isRunningAt(address);
		const callTimeoutMs = this.#callTimeoutMs;
		await anyOf(servers, (server) =>
			refresh(
				{ deployment, descriptor, isRunningAt, callTimeoutMs },
				{ registered, registrar: server },
			),
		);
		if (this.#announced !== undefined) {
			await this.announce(this.#announced);
		}
	}

	/** This deployment in the registry view; before it appears there, the result of the registration. */
	get #own(): RegisteredDeployment | undefined {
		const registered = this.#registration?.registered;
		return registered && (this.#view.deployments().get(registered.uid) ?? registered);
	}

	#isReady(): boolean {
		const registrar = this.#registration?.registrar.address;
		return registrar !== undefined && (this.#isAlone || this.#sources.areTried(registrar));
	}

	#addConfigured(): void {
		const { ownMeta, metaAddresses, deployment } = this.#options;
		if (ownMeta !== undefined) {
			this.#sources.add({ address: deployment.address, client: ownMeta() });
		}
		for (const address of metaAddresses) {
			this.#addAddress(address);
		}
	}

	#addAddress(address: string): void {
		if (this.#sources.get(address) === undefined && address !== this.#options.deployment.address) {
			const transport = this.#options.connect(address);
			const client = createClient(ResourceService, transport);
			const mixin = createClient(SchemaMixinService, transport);
			this.#sources.add({ address, client, mixin });
		}
	}

	get #identity(): IdentityOptions {
		const { backend, runtime, storageIncarnation } = this.#options;
		return { backend, runtime, ...(storageIncarnation && { storageIncarnation }) };
	}

	async #register(signal: AbortSignal): Promise<void> {
		const { deployment, descriptor, runtime, ownMeta } = this.#options;
		const { clock, random } = runtime;
		const backoff = new Backoff({ ...registerAgain, clock, random });
		while (!signal.aborted) {
			try {
				const { groups } = this.#sources;
				this.#registration = await register({
					deployment,
					descriptor,
					identity: this.#identity,
					metas: ownMeta === undefined ? groups : groups.slice(0, 1),
					isServing: this.#isAlone,
					known: () => this.#view.deployments().values(),
					isRunningAt: (address) => this.#isRunningAt(address),
					reportTo: (servers) => this.#knownOf(servers),
					logger: this.#logger,
					callTimeoutMs: this.#callTimeoutMs,
				});
				this.#isAlone = false;
				if (takenOver(this.self).length > 0) {
					// It is to wait for all deployments that may have references of before: those that exist now.
					this.#sources.readAgain();
				}
				if (!this.#hasEnded) {
					this.#state = { kind: "registered" };
				}
				this.#changed();
				return;
			} catch (failure) {
				if (failure instanceof DeploymentDeleted) {
					this.#becomeDeleted();
					return;
				}
				if (failure instanceof DeploymentSucceeded && this.#registration !== undefined) {
					this.#succeeded(failure.uid, failure.successorUid);
					return;
				}
				const { rawMessage } = ConnectError.from(failure);
				if (this.#state.kind === "registering" && this.#state.lastProblem !== rawMessage) {
					this.#logger.warn(
						{ problem: rawMessage },
						"the deployment is not registered yet: trying again",
					);
					this.#state = { kind: "registering", lastProblem: rawMessage };
				}
				if (!(failure instanceof DeploymentSucceeded)) {
					await this.#startAlone();
				}
				await backoff.wait(signal).catch(() => {});
			}
		}
	}

	/** Serves by the stored view, if this storage may do so without a meta deployment. Never rejects. */
	async #startAlone(): Promise<void> {
		const asOf = this.#storedAsOf;
		if (asOf === undefined || this.#registration !== undefined) {
			return;
		}
		try {
			const identity = await readIdentity(this.#identity);
			const registered = identity && this.#view.deployments().get(identity.uid);
			const registrar = registered && this.#sources.get(this.#view.sourceOf(registered.uid) ?? "");
			const mayStart = identity !== undefined && mayStartAlone(identity);
			if (!mayStart || registered === undefined || registrar === undefined) {
				return;
			}
			if (this.#view.successorOf(registered.uid) !== undefined) {
				return;
			}
			this.#registration = { registered, registrar };
			this.#isAlone = true;
			this.#logger.warn(
				{ asOf },
				`no meta deployment can be reached: starting with the registry as it was at ${asOf.toISOString()}`,
			);
			this.#changed();
		} catch (failure) {
			this.#logger.debug({ err: failure }, "the identity of the deployment can't be read");
		}
	}

	/** Another deployment says that a deployment was deleted, and that it has dropped its sources. */
	#refused(uid: string, by: DeploymentInfo): void {
		if (uid === this.self.uid && uid !== "" && !this.#hasEnded) {
			this.#logger.error({ uid, by: by.name }, "another deployment has dropped this one");
			this.#becomeDeleted();
		}
	}

	/**
	 * Another storage has taken over from this deployment. Its uid is not given up: then it would register as a successor
	 * too when it starts again, and the two would take over from each other.
	 */
	#succeeded(uid: string, successorUid: string): void {
		if (uid === this.self.uid && uid !== "" && !this.#hasEnded) {
			const reason = takenOverBy(uid, successorUid);
			this.#state = { kind: "succeeded", reason };
			this.#logger.error({ uid, successor: successorUid }, reason);
			this.#changed();
		}
	}

	/** Whether it must not serve writes any longer. */
	get #hasEnded(): boolean {
		return this.#state.kind === "deleted" || this.#state.kind === "succeeded";
	}

	/** Its uid is given up, so that it does not start with it again, not even with the stored view. */
	#becomeDeleted(reason = `deployment ${this.self.name} was deleted`): void {
		const { uid } = this.self;
		if (this.#hasEnded) {
			return;
		}
		this.#state = { kind: "deleted", reason };
		this.#logger.error({ uid }, reason);
		void giveUpUid(this.#identity, uid).then(
			() => this.#changed(),
			(failure) => {
				this.#logger.error({ err: failure, uid }, "could not give up the uid of this deployment");
				this.#changed();
			},
		);
	}

	#changed(): void {
		this.#stored.changed();
		for (const { service, address, disabled } of this.#view.deployments().values()) {
			if (service === metaService && !disabled) {
				this.#addAddress(address);
			}
		}
		for (const uid of this.#clients.keys()) {
			if (!this.#view.deployments().has(uid)) {
				this.#clients.delete(uid);
				this.#running.forget(uid);
			}
		}
		const own = this.#own;
		if (own !== undefined && !this.#hasEnded) {
			this.#reports.begin(this.#end.signal);
			void this.#unused.delete(own, this.#end.signal);
		}
		this.#recovery?.changed();
		this.#checkOwnSuccessor();
		this.#checkOtherRestore();
		void this.#checkOwnDeletion();
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}

	#checkOwnSuccessor(): void {
		const own = this.#registration?.registered;
		const successor = own && this.#view.successorOf(own.uid);
		// Another server of the same storage has registered it again, because its Deployment was deleted.
		const isOfStorage = successor?.storageIncarnation === own?.storageIncarnation;
		if (own !== undefined && successor !== undefined && !isOfStorage) {
			this.#succeeded(own.uid, successor.uid);
		}
	}

	/**
	 * Two restores of a backup that register at the same time do not name each other, so that neither stops. The one that is
	 * responsible by its uid registers again: then it takes over from both, by the rules of every succession.
	 */
	#checkOtherRestore(): void {
		const own = this.#own;
		if (own === undefined || this.#state.kind !== "registered") {
			return;
		}
		const other = otherRestore(own, this.#view);
		if (other !== undefined && !isPlanted("stay beside another restore of the backup")) {
			this.#becomeDeleted(
				`${other.name} (${other.uid}) was restored from the same backup and has registered at the same time: deployment ${own.name} registers again, to take over from it`,
			);
		}
	}

	/**
	 * Absence from the registry view proves nothing, but is a reason to read the permanent record. Retries until a meta
	 * deployment responds: the registry may not change again. Never rejects.
	 */
	async #checkOwnDeletion(): Promise<void> {
		if (this.#isCheckingDeletion) {
			return;
		}
		this.#isCheckingDeletion = true;
		const { signal } = this.#end;
		const backoff = new Backoff({ ...registerAgain, clock: this.#options.runtime.clock });
		while (this.#isAbsent && !signal.aborted) {
			try {
				if (await this.#hasDeletionRecord(this.self.uid)) {
					this.#becomeDeleted();
				} else {
					await this.#giveBackOwn();
				}
				break;
			} catch (failure) {
				this.#logger.debug(
					{ err: failure },
					"could not determine whether this deployment was deleted",
				);
			}
			await backoff.wait(signal).catch(() => {});
		}
		this.#isCheckingDeletion = false;
	}

	/** Registers again with a meta deployment that was restored, and was complete before this deployment had reported. */
	async #giveBackOwn(): Promise<void> {
		const registrar = this.#registration?.registrar.address ?? "";
		const servers = this.#sources.serversWith(registrar);
		const addresses = servers.map(({ address }) => address);
		const meta = metaOf(this.#view.deploymentsAt(addresses).map(deploymentOf));
		if (meta !== undefined && !meta.recovering && this.#options.ownMeta === undefined) {
			await this.#report({ meta, servers });
		}
	}

	/** Whether this deployment is missing from the registry view, though its registrar has been read. */
	get #isAbsent(): boolean {
		const { registered, registrar } = this.#registration ?? {};
		return (
			registered !== undefined &&
			registrar !== undefined &&
			this.#state.kind === "registered" &&
			this.#sources.isRead(registrar.address) &&
			!this.#view.deployments().has(registered.uid)
		);
	}
}

/**
 * Another deployment of the place that has taken over from the same one, from which this one has not taken over, although
 * its uid is greater; of another storage, and without a successor.
 */
function otherRestore(
	own: RegisteredDeployment,
	view: RegistryView,
): RegisteredDeployment | undefined {
	const before = takenOver(own);
	return [...view.deployments().values()].find(
		(each) =>
			each.service === own.service &&
			each.region === own.region &&
			each.storageIncarnation !== own.storageIncarnation &&
			each.uid < own.uid &&
			!before.includes(each.uid) &&
			takenOver(each).some((uid) => before.includes(uid)) &&
			view.successorOf(each.uid) === undefined,
	);
}
