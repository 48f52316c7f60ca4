import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Backoff, type Logger, type Runtime, silentLogger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { decodeEndpoints } from "../protocol/endpoints-header.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { createBalancedTransport } from "./balanced-transport.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import type { DeploymentInfo, Environment } from "./environment.ts";
import { unavailable } from "./meta-calls.ts";
import { followedTypes, followMeta, type MetaSource } from "./meta-source.ts";
import { metaService } from "./meta-types.ts";
import { isDeletedAt, type Registration, register, updateDeployment } from "./registration.ts";
import { type RegisteredDeployment, RegistryView } from "./registry-view.ts";

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
	/** The addresses of the running servers of this deployment. Default: they are not known. */
	readonly ownServers?: () => readonly string[];
	readonly runtime: Runtime;
	readonly logger?: Logger;
	/** The timeout of a call to a meta deployment, in milliseconds. Default: 5 s. */
	readonly callTimeoutMs?: number;
}

/** The state of the registration of this deployment. */
export type RegistryState =
	| { readonly kind: "registering"; readonly lastProblem: string }
	| { readonly kind: "registered" }
	/** Its uid has been deleted: it must not serve writes, and registers again with its next start. */
	| { readonly kind: "deleted" };

interface Source extends MetaSource {
	/** The number of types whose first snapshot is complete. */
	complete: number;
	/** Whether it was unreachable, or a watch broke, at least once. */
	broken: boolean;
}

const registerAgain = { baseMs: 250, maxMs: 5_000 } as const;

/**
 * Service discovery: registers this deployment with the meta service, and follows all meta deployments that
 * it knows, from its configuration or from the registry view itself.
 *
 *     run ──▶ follow the sources ──▶ view ──▶ listeners
 *         └─▶ register, with retries ──▶ `ready`, once the registrar's snapshots are complete too
 *
 * If the meta service is unreachable, the last registry view stays.
 */
export class DeploymentRegistry implements Environment {
	readonly #options: DeploymentRegistryOptions;
	readonly #logger: Logger;
	readonly #callTimeoutMs: number;
	readonly #view = new RegistryView();
	readonly #sources = new Map<string, Source>();
	readonly #listeners = new Set<() => void>();
	readonly #clients = new Map<string, Client<typeof SchemaMixinService>>();
	/** The running servers of other deployments, by uid, as these have named them last. Never forgotten. */
	readonly #running = new Map<string, readonly string[]>();
	#registration: Registration | undefined;
	#state: RegistryState = { kind: "registering", lastProblem: "" };
	#announced: string | undefined;
	#established = false;
	/** Starts to follow a source. Set while the registry runs. */
	#follow: ((source: Source) => void) | undefined;
	#isCheckingDeletion = false;

	constructor(options: DeploymentRegistryOptions) {
		this.#options = options;
		this.#logger = options.logger ?? silentLogger;
		this.#callTimeoutMs = options.callTimeoutMs ?? 5_000;
		if (options.ownMeta === undefined && options.metaAddresses.length === 0) {
			throw new Error("a deployment needs the address of a meta deployment");
		}
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
			established: this.#established || (own?.established ?? true),
		};
	}

	get isComplete(): boolean {
		return [...this.#sources.values()].every(({ complete }) => complete >= followedTypes);
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
		return self.predecessorUid === uid && uid !== "" ? self : this.#view.successorOf(uid);
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
			addresses: () => ({ running: this.#running.get(uid) ?? [], registered: registered() }),
			connect,
			onEndpoints: (value) => this.#running.set(uid, decodeEndpoints(value, registered())),
			clock: runtime.clock,
		});
	}

	siblings(): readonly Client<typeof SchemaMixinService>[] {
		const { connect, deployment } = this.#options;
		return this.#ownServers()
			.filter((address) => address !== deployment.address)
			.map((address) => createClient(SchemaMixinService, connect(address)));
	}

	#ownServers(): readonly string[] {
		return this.#options.ownServers?.() ?? [];
	}

	isDeleted(uid: string): Promise<boolean> {
		return isDeletedAt(
			{ metas: [...this.#sources.values()], callTimeoutMs: this.#callTimeoutMs },
			uid,
		);
	}

	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/**
	 * Resolves once this deployment is registered and the first registry view is complete: it contains the snapshots
	 * of the registrar of this deployment and of every other reachable meta deployment. Rejects when the signal
	 * aborts.
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
		await updateDeployment(this.#registration, fields, this.#callTimeoutMs);
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
			await updateDeployment(this.#registration, { address }, this.#callTimeoutMs);
		}
	}

	/** Registers and follows, until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { runtime } = this.#options;
		const following = new Set<Promise<void>>();
		this.#follow = (source) => {
			const follow = followMeta(
				{
					source,
					view: this.#view,
					runtime,
					logger: this.#logger,
					onChange: () => this.#changed(),
					onStep: (step) => {
						if (step === "complete") {
							source.complete += 1;
						} else {
							source.broken = true;
						}
						this.#changed();
					},
				},
				signal,
			).finally(() => following.delete(follow));
			following.add(follow);
		};
		this.#addConfigured();
		await this.#register(signal);
		while (following.size > 0) {
			await Promise.all(following);
		}
		this.#follow = undefined;
	}

	/** This deployment in the registry view; before it appears there, the result of the registration. */
	get #own(): RegisteredDeployment | undefined {
		const registered = this.#registration?.registered;
		return registered && (this.#view.deployments().get(registered.uid) ?? registered);
	}

	#isReady(): boolean {
		const registrar = this.#registration?.registrar.address;
		return (
			registrar !== undefined &&
			[...this.#sources.values()].every(
				({ address, complete, broken }) =>
					complete >= followedTypes || (broken && address !== registrar),
			)
		);
	}

	#addConfigured(): void {
		const { ownMeta, metaAddresses, deployment } = this.#options;
		if (ownMeta !== undefined) {
			this.#add({ address: deployment.address, client: ownMeta() });
		}
		for (const address of metaAddresses) {
			this.#addAddress(address);
		}
	}

	#addAddress(address: string): void {
		if (!this.#sources.has(address) && address !== this.#options.deployment.address) {
			const client = createClient(ResourceService, this.#options.connect(address));
			this.#add({ address, client });
		}
	}

	#add(meta: MetaSource): void {
		const source = { ...meta, complete: 0, broken: false };
		this.#sources.set(source.address, source);
		this.#follow?.(source);
	}

	async #register(signal: AbortSignal): Promise<void> {
		const { deployment, descriptor, backend, runtime, storageIncarnation, ownMeta } = this.#options;
		const isRunningAt = (address: string) => this.#ownServers().includes(address);
		const { clock, random } = runtime;
		const backoff = new Backoff({ ...registerAgain, clock, random });
		while (!signal.aborted) {
			try {
				const all = [...this.#sources.values()];
				this.#registration = await register({
					deployment,
					descriptor,
					identity: { backend, runtime, ...(storageIncarnation && { storageIncarnation }) },
					metas: ownMeta === undefined ? all : all.slice(0, 1),
					isRunningAt,
					logger: this.#logger,
					callTimeoutMs: this.#callTimeoutMs,
				});
				this.#state = { kind: "registered" };
				this.#changed();
				return;
			} catch (failure) {
				const { rawMessage } = ConnectError.from(failure);
				if (this.#state.kind === "registering" && this.#state.lastProblem !== rawMessage) {
					this.#logger.warn(
						{ problem: rawMessage },
						"the deployment is not registered yet: trying again",
					);
					this.#state = { kind: "registering", lastProblem: rawMessage };
				}
				await backoff.wait(signal).catch(() => {});
			}
		}
	}

	#changed(): void {
		for (const { service, address, disabled } of this.#view.deployments().values()) {
			if (service === metaService && !disabled) {
				this.#addAddress(address);
			}
		}
		for (const uid of this.#clients.keys()) {
			if (!this.#view.deployments().has(uid)) {
				this.#clients.delete(uid);
				this.#running.delete(uid);
			}
		}
		void this.#checkOwnDeletion();
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}

	/** Absence from the registry view proves nothing, but is a reason to read the permanent record. Never rejects. */
	async #checkOwnDeletion(): Promise<void> {
		const { registered, registrar } = this.#registration ?? {};
		const isComplete =
			(this.#sources.get(registrar?.address ?? "")?.complete ?? 0) >= followedTypes;
		if (
			registered === undefined ||
			registrar === undefined ||
			this.#isCheckingDeletion ||
			this.#state.kind !== "registered" ||
			!isComplete ||
			this.#view.isReportedBy(registrar.address, registered.uid)
		) {
			return;
		}
		this.#isCheckingDeletion = true;
		try {
			if (await this.isDeleted(registered.uid)) {
				this.#state = { kind: "deleted" };
				this.#logger.error({ uid: registered.uid }, "this deployment was deleted");
				this.#changed();
			}
		} catch (failure) {
			this.#logger.debug(
				{ err: failure },
				"could not determine whether this deployment was deleted",
			);
		} finally {
			this.#isCheckingDeletion = false;
		}
	}
}
