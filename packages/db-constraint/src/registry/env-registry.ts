import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Backoff, type Logger, type Runtime, silentLogger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { DeploymentInfo, Environment } from "../environment.ts";
import type { ServiceDescriptor } from "../service-descriptor.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { unavailable } from "./meta-calls.ts";
import { MetaPicture, type RegisteredDeployment } from "./meta-picture.ts";
import { followedTypes, followMeta, type MetaSource } from "./meta-source.ts";
import { metaService } from "./meta-types.ts";
import { isDeletedAt, type Registration, register, updateDeployment } from "./registration.ts";

/** What a registry is made of. */
export interface EnvRegistryOptions {
	readonly deployment: DeploymentConfiguration;
	readonly descriptor: ServiceDescriptor;
	/** The own storage, below the constraints: the identity is kept there. */
	readonly backend: StorageBackend;
	/** What the storage says of itself: another one after each restore. */
	readonly storageIncarnation?: string;
	/** Where meta deployments are reached, in the order in which to register with them. */
	readonly metaAddresses: readonly string[];
	/** The own resource service, where this is a meta deployment: it registers with itself. */
	readonly ownMeta?: () => Client<typeof ResourceService>;
	/** Opens the way to the internal listener of a deployment. */
	readonly connect: (address: string) => Transport;
	readonly runtime: Runtime;
	readonly logger?: Logger;
	/** How long one call of a meta deployment may take, in milliseconds; 5 s where it is absent. */
	readonly callMs?: number;
}

/** What has become of the own registration. */
export type RegistryState =
	| { readonly kind: "registering"; readonly lastProblem: string }
	| { readonly kind: "registered" }
	/** Its uid has been deleted: it must not serve writes, and begins anew with its next start. */
	| { readonly kind: "deleted" };

interface Source extends MetaSource {
	/** Types whose first snapshot is there. */
	complete: number;
	/** Whether it could not be reached, or has broken off, at least once. */
	broken: boolean;
}

const registerAgain = { baseMs: 250, maxMs: 5_000 } as const;

/**
 * Service discovery: registers this deployment with the meta service, and follows all meta deployments
 * that it knows, by configuration or from the picture itself.
 *
 *     run ──▶ follow the sources ──▶ picture ──▶ listeners
 *         └─▶ register, until it is done ──▶ `ready`, once the keeper's picture is complete too
 *
 * Where the meta service is lost, the last picture stays.
 */
export class EnvRegistry implements Environment {
	readonly #options: EnvRegistryOptions;
	readonly #logger: Logger;
	readonly #callMs: number;
	readonly #picture = new MetaPicture();
	readonly #sources = new Map<string, Source>();
	readonly #listeners = new Set<() => void>();
	readonly #clients = new Map<
		string,
		{ readonly address: string; readonly client: Client<typeof SchemaMixinService> }
	>();
	#registration: Registration | undefined;
	#state: RegistryState = { kind: "registering", lastProblem: "" };
	#announced: string | undefined;
	#established = false;
	/** Begins to follow a source; there once it runs. */
	#follow: ((source: Source) => void) | undefined;
	#looking = false;

	constructor(options: EnvRegistryOptions) {
		this.#options = options;
		this.#logger = options.logger ?? silentLogger;
		this.#callMs = options.callMs ?? 5_000;
		if (options.ownMeta === undefined && options.metaAddresses.length === 0) {
			throw new Error("a deployment needs the address of a meta deployment");
		}
	}

	/** What has become of the own registration. */
	get state(): RegistryState {
		return this.#state;
	}

	/** The version that operators want; empty where they leave it to the configuration. */
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
		const others = [...this.#picture.deployments().values()].filter(({ uid }) => uid !== self.uid);
		return self.uid === "" ? others : [self, ...others];
	}

	find(service: string, region: string): DeploymentInfo | undefined {
		const { self } = this;
		return service === self.service && region === self.region
			? self
			: this.#picture.find(service, region);
	}

	findOwner(
		group: string,
		service: string | undefined,
		region: string,
	): DeploymentInfo | undefined {
		const { self } = this;
		const name = service === "" ? self.service : (service ?? this.#picture.serviceOfGroup(group));
		return name === undefined ? undefined : this.find(name, region || self.region);
	}

	client(uid: string): Client<typeof SchemaMixinService> {
		const known = this.#picture.deployments().get(uid);
		if (known === undefined || known.disabled) {
			const what = known === undefined ? "is not known" : `(${known.name}) is disabled`;
			throw new ConnectError(`deployment ${uid} ${what}`, Code.Unavailable);
		}
		const before = this.#clients.get(uid);
		if (before?.address === known.address) {
			return before.client;
		}
		const client = createClient(SchemaMixinService, this.#options.connect(known.address));
		this.#clients.set(uid, { address: known.address, client });
		return client;
	}

	isDeleted(uid: string): Promise<boolean> {
		return isDeletedAt({ metas: [...this.#sources.values()], callMs: this.#callMs }, uid);
	}

	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	/**
	 * Resolves once this deployment is registered and the first picture is complete: what the keeper of
	 * the registration says is there, and what every other meta deployment says, unless it can't be
	 * reached. Rejects when the signal aborts.
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
	 * Announces the version that this deployment speaks from now on, and that it has established what
	 * its predecessor referenced.
	 *
	 * @throws ConnectError where the keeper of its registration does not take it: call it again.
	 */
	async announce(version: string): Promise<void> {
		if (this.#registration === undefined) {
			throw unavailable("the deployment is not registered yet");
		}
		const { predecessorUid } = this.#registration.registered;
		const fields = { currentVersion: version, established: predecessorUid !== "" };
		await updateDeployment(this.#registration, fields, this.#callMs);
		this.#announced = version;
		this.#established = true;
		this.#changed();
	}

	/** Registers and follows, until the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { runtime } = this.#options;
		const following = new Set<Promise<void>>();
		this.#follow = (source) => {
			const follow = followMeta(
				{
					source,
					picture: this.#picture,
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

	/** What meta deployments say of this one; before, what the registration answered. */
	get #own(): RegisteredDeployment | undefined {
		const registered = this.#registration?.registered;
		return registered && (this.#picture.deployments().get(registered.uid) ?? registered);
	}

	#isReady(): boolean {
		const keeper = this.#registration?.keeper.address;
		return (
			keeper !== undefined &&
			[...this.#sources.values()].every(
				({ address, complete, broken }) =>
					complete >= followedTypes || (broken && address !== keeper),
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
					logger: this.#logger,
					callMs: this.#callMs,
				});
				this.#state = { kind: "registered" };
				this.#changed();
				return;
			} catch (failure) {
				const { rawMessage } = ConnectError.from(failure);
				if (this.#state.kind === "registering" && this.#state.lastProblem !== rawMessage) {
					this.#logger.warn({ problem: rawMessage }, "not registered yet: it is tried again");
					this.#state = { kind: "registering", lastProblem: rawMessage };
				}
				await backoff.wait(signal).catch(() => {});
			}
		}
	}

	#changed(): void {
		for (const { service, address, disabled } of this.#picture.deployments().values()) {
			if (service === metaService && !disabled) {
				this.#addAddress(address);
			}
		}
		for (const uid of this.#clients.keys()) {
			if (!this.#picture.deployments().has(uid)) {
				this.#clients.delete(uid);
			}
		}
		void this.#lookForOwnDeletion();
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}

	/** Absence says nothing, but it is a reason to ask. Never rejects. */
	async #lookForOwnDeletion(): Promise<void> {
		const { registered, keeper } = this.#registration ?? {};
		const isComplete = (this.#sources.get(keeper?.address ?? "")?.complete ?? 0) >= followedTypes;
		if (
			registered === undefined ||
			keeper === undefined ||
			this.#looking ||
			this.#state.kind !== "registered" ||
			!isComplete ||
			this.#picture.isSaidBy(keeper.address, registered.uid)
		) {
			return;
		}
		this.#looking = true;
		try {
			if (await this.isDeleted(registered.uid)) {
				this.#state = { kind: "deleted" };
				this.#logger.error({ uid: registered.uid }, "this deployment was deleted");
				this.#changed();
			}
		} catch (failure) {
			this.#logger.debug({ err: failure }, "whether this deployment was deleted is not known");
		} finally {
			this.#looking = false;
		}
	}
}
