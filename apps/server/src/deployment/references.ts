import { type Client, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { ManagerState } from "@plinth/controller";
import {
	type ActiveSchema,
	type Constraints,
	createConstraints,
	DeploymentRegistry,
	ensureDeploymentUid,
	followActiveSchema,
	localEnvironment,
	metaService,
	ReferenceManager,
	type ReferenceMetrics,
	recordDeletedDeployments,
	reestablishOwnReferences,
	ServiceDescriptor,
} from "@plinth/db-constraint";
import type { ResourceService } from "@plinth/proto";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { ResourceType } from "@plinth/resource";
import type { CallerAuthenticator } from "@plinth/resource-service";
import {
	Backoff,
	type LeaseManager,
	type Logger,
	type Runtime,
	type SuspendableLeases,
} from "@plinth/runtime";
import type { StorageBackend, StorageIdentity } from "@plinth/storage";
import type { Readiness } from "../operations/readiness.ts";
import type { Connections } from "./connections.ts";
import type { DeploymentOptions } from "./deployment-options.ts";

/** Options of `References.open`. */
export interface ReferencesOptions {
	/** The storage, without references. */
	readonly backend: StorageBackend;
	/** The identity of the storage, if it has one. */
	readonly identity: StorageIdentity | undefined;
	/** All types of the server. */
	readonly types: readonly ResourceType[];
	/** Types of other services that references of `types` name. */
	readonly foreignTypes: readonly ResourceType[];
	/** The deployment that this server is; `undefined` if there are no others. */
	readonly deployment: DeploymentOptions | undefined;
	/** Connections to other deployments. */
	readonly connections: Connections | undefined;
	/** Authenticates callers of other deployments. */
	readonly callers: CallerAuthenticator;
	/** The server's own resource service, with which a meta deployment registers itself. */
	readonly ownService: () => Client<typeof ResourceService>;
	/** Suspended while a schema other than this server's is active. */
	readonly leases: Pick<SuspendableLeases, "suspend" | "resume">;
	readonly readiness: Pick<Readiness, "block" | "clear">;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called if the server must stop because its deployment was deleted. */
	readonly onFailure: (failure: unknown) => void;
}

/** Options of the controllers of references. */
export interface ControlOptions {
	readonly client: Client<typeof ResourceService>;
	readonly cloningClient: Client<typeof ResourceService>;
	readonly leases: LeaseManager;
}

function supersededBy(schema: ActiveSchema & { readonly kind: "other" }): string {
	const { fingerprint, ownFingerprint } = schema;
	return `another server has activated the schema of references "${fingerprint}", and this server has "${ownFingerprint}": this server refuses all writes and holds no leases. If "${fingerprint}" is right, stop this server, or start it with the modules of the other servers. If "${ownFingerprint}" is right, restart this server. It also continues, without a restart, once "${ownFingerprint}" is active again`;
}

/** The references of a server: its storage, and the work that keeps references consistent. */
export class References {
	readonly #options: ReferencesOptions;
	readonly #constraints: Constraints;
	readonly #registry: DeploymentRegistry | undefined;
	readonly #version: string;
	readonly #end = new AbortController();
	readonly #running: Promise<unknown>[] = [];
	#manager: ReferenceManager | undefined;

	private constructor(
		options: ReferencesOptions,
		constraints: Constraints,
		registry: DeploymentRegistry | undefined,
		version: string,
	) {
		this.#options = options;
		this.#constraints = constraints;
		this.#registry = registry;
		this.#version = version;
		this.#running.push(constraints.run(this.#end.signal));
		const unfollow = followActiveSchema(constraints.context, (schema) => this.#onSchema(schema));
		this.#end.signal.addEventListener("abort", unfollow, { once: true });
	}

	/**
	 * Puts the constraints around the storage, and activates their schema.
	 *
	 * @throws Error if the options of types contradict each other.
	 */
	static async open(options: ReferencesOptions): Promise<References> {
		const { types, foreignTypes, deployment, runtime, logger, identity } = options;
		const service = deployment?.service ?? "";
		const descriptor = new ServiceDescriptor({ types, foreignTypes, service });
		const version = deployment?.version ?? descriptor.versions.at(-1) ?? "v1";
		const isMeta = service === metaService;
		const backend = isMeta ? recordDeletedDeployments(options.backend, runtime) : options.backend;
		let registry: DeploymentRegistry | undefined;
		if (deployment !== undefined && options.connections !== undefined) {
			registry = new DeploymentRegistry({
				deployment: { ...deployment, version },
				descriptor,
				backend,
				...(identity && { storageIncarnation: identity.incarnation }),
				metaAddresses: deployment.metaAddresses,
				...(isMeta && { ownMeta: options.ownService }),
				connect: options.connections.open,
				runtime,
				logger,
			});
		}
		const environment =
			registry ?? localEnvironment(await ensureDeploymentUid(backend, runtime, identity?.uid));
		const { callers } = options;
		const constraints = createConstraints({
			...{ backend, descriptor, environment, runtime, logger, callers },
		});
		await constraints.schemaPass.begin();
		return new References(options, constraints, registry, version);
	}

	/** The storage with references, which services and controllers use. */
	get store(): StorageBackend {
		return this.#constraints.store;
	}

	/** The service for other deployments. */
	get mixin(): ServiceImpl<typeof SchemaMixinService> {
		return this.#constraints.service;
	}

	/** The names of the deployments with which this one shares references. */
	get relatedDeployments(): readonly string[] {
		return this.#manager?.relatedDeployments.map(({ name }) => name).sort() ?? [];
	}

	/** The current measurements. */
	metrics(): ReferenceMetrics {
		return this.#constraints.metrics();
	}

	/** A report on the controllers. */
	state(): ManagerState | undefined {
		return this.#manager?.state();
	}

	/**
	 * Registers with the meta deployments, and waits until writes can be accepted. Without other deployments, it only
	 * completes the schema.
	 *
	 * @throws the reason of the signal if it aborts first.
	 */
	async discover(signal: AbortSignal): Promise<void> {
		const registry = this.#registry;
		const ends = AbortSignal.any([signal, this.#end.signal]);
		if (registry === undefined) {
			await this.#constraints.schemaPass.complete(ends);
			return;
		}
		this.#running.push(registry.run(this.#end.signal));
		await registry.ready(ends);
		const { context } = this.#constraints;
		await this.#retry("establish references again", ends, () =>
			reestablishOwnReferences(context, ends),
		);
		registry.onChange(() => this.#follow(registry));
		this.#running.push(this.#announce(registry).catch(() => {}));
	}

	/** Starts the controllers of references. */
	control(options: ControlOptions): void {
		const manager = new ReferenceManager({
			...options,
			constraints: this.#constraints,
			onFailure: this.#options.onFailure,
		});
		this.#manager = manager;
		this.#running.push(manager.run(this.#end.signal));
	}

	/** Stops everything that runs, and waits until it has stopped. */
	async close(): Promise<void> {
		this.#end.abort(new Error("the server is stopping"));
		await Promise.allSettled(this.#running);
	}

	/** Aborts when a schema other than this server's becomes active. */
	#superseded = new AbortController();

	/**
	 * While another schema is active, this server can't write: it is not ready, and leaves the leases to servers
	 * that can. It never activates its own schema again by itself, because two servers would alternate.
	 */
	#onSchema(schema: ActiveSchema): void {
		const { leases, readiness } = this.#options;
		if (schema.kind === "other") {
			const reason = supersededBy(schema);
			this.#superseded.abort(new Error(reason));
			readiness.block("references", reason);
			leases.suspend(new Error(reason));
			return;
		}
		this.#superseded = new AbortController();
		readiness.clear("references");
		leases.resume();
		// The server that activated it again may have stopped before the schema was complete.
		const ends = AbortSignal.any([this.#superseded.signal, this.#end.signal]);
		const completing = this.#retry("complete the schema of references", ends, () =>
			this.#constraints.schemaPass.complete(ends),
		);
		this.#running.push(completing.catch(() => {}));
	}

	/** Announces the version once the schema is complete, and again when operators request another. */
	async #announce(registry: DeploymentRegistry): Promise<void> {
		const { signal } = this.#end;
		await this.#retry("complete the schema of references", signal, () =>
			this.#constraints.schemaPass.complete(signal),
		);
		await this.#retry("announce the version", signal, () =>
			registry.announce(this.#wanted(registry)),
		);
		this.#announced = true;
		this.#follow(registry);
	}

	#announced = false;
	#switching = false;

	#wanted(registry: DeploymentRegistry): string {
		const { versions } = this.#constraints.context.descriptor;
		const { wantedVersion } = registry;
		return versions.includes(wantedVersion) ? wantedVersion : this.#version;
	}

	/** Follows the Deployment of this server: operators delete it, or request another version. */
	#follow(registry: DeploymentRegistry): void {
		if (registry.state.kind === "deleted") {
			const { name } = registry.self;
			this.#options.onFailure(
				new Error(`deployment ${name} was deleted: restart the server to register it again`),
			);
			return;
		}
		const wanted = this.#wanted(registry);
		if (this.#announced && !this.#switching && wanted !== registry.self.version) {
			this.#switching = true;
			const switching = this.#retry("switch the version", this.#end.signal, () =>
				registry.announce(this.#wanted(registry)),
			)
				.catch(() => {})
				.finally(() => {
					this.#switching = false;
				});
			this.#running.push(switching);
		}
	}

	/** Retries with backoff until `run` succeeds. @throws the reason of the signal. */
	async #retry(what: string, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
		const { runtime, logger } = this.#options;
		const backoff = new Backoff({ baseMs: 250, maxMs: 10_000, clock: runtime.clock });
		for (;;) {
			signal.throwIfAborted();
			try {
				await run();
				return;
			} catch (failure) {
				signal.throwIfAborted();
				const { rawMessage } = ConnectError.from(failure);
				logger.warn({ problem: rawMessage }, `could not ${what}: trying again`);
			}
			await backoff.wait(signal);
		}
	}
}
