import type { ServiceImpl } from "@connectrpc/connect";
import type { ControllerReports } from "@plinth/controller";
import type { ID } from "@plinth/proto";
import type { DeploymentService } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { silentLogger, sleep, systemRuntime } from "@plinth/runtime";
import type { Mutation, StorageBackend } from "@plinth/storage";
import { ReferenceManager } from "../controller/reference-manager.ts";
import {
	createDeploymentService,
	type DeploymentServiceOptions,
} from "../deployments/deployment-service.ts";
import { isPlanted } from "../fault-points.ts";
import { createReferenceService, type ReferenceServiceOptions } from "../plan/reference-service.ts";
import { recordDeletedDeployments } from "../registry/deleted-deployments.ts";
import { ownAddresses } from "../registry/deployment-configuration.ts";
import {
	DeploymentRegistry,
	type DeploymentRegistryOptions,
} from "../registry/deployment-registry.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { metaService } from "../registry/meta-types.ts";
import { type ActiveSchema, followActiveSchema } from "../schema/active-schema.ts";
import { isSchemaActive } from "../schema/descriptor-record.ts";
import {
	announcedAddresses,
	type EndpointAddresses,
	endpointName,
} from "../shadow/endpoint-addresses.ts";
import { assertUnreferenced } from "../shadow/shadow-records.ts";
import { hasGivenUp } from "../succession/deployment-record.ts";
import { ensureDeploymentUid } from "../succession/deployment-uid.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { type Constraints, createConstraints } from "./constraints.ts";
import { EndpointRecords } from "./endpoint-records.ts";
import type { ReferenceMetrics } from "./metrics.ts";
import { Phases, type ReferencesPhase, type ReferencesState } from "./phases.ts";
import type { ControlOptions, ReferencesOptions } from "./references-options.ts";
import { RetriedSteps } from "./retried-steps.ts";
import { supersededBy } from "./superseded.ts";

/**
 * The references of a server, from its start to its stop. `ReferencesPhase` says in which order they begin:
 *
 *     openReferences ─▶ discover ─▶ control ─▶ close
 */
export interface References {
	/** The storage with references, which services and controllers use. It takes writes once it is `serving`. */
	readonly store: StorageBackend;
	/**
	 * An assert for commits beside the references, which remove copies of resources of other clusters: that nothing references
	 * the resource, and that none of its own references is recorded. What is referenced is removed through `store`, which
	 * applies the rules of the references.
	 */
	unreferenced(id: ID): Mutation;
	/** The service for other deployments. They may call it from now on. */
	readonly service: ServiceImpl<typeof SchemaMixinService>;
	/** How far the references are, and what is in the way. */
	readonly state: ReferencesState;
	/** Resolves once the phase is reached. Rejects with the reason of the signal if it aborts first. */
	until(phase: ReferencesPhase, signal: AbortSignal): Promise<void>;
	/**
	 * Registers with the meta deployments, and waits until writes can be accepted. Then completes the schema and announces
	 * the version. Without other deployments, it only completes the schema.
	 *
	 * @throws the reason of the signal if it aborts first.
	 */
	discover(signal: AbortSignal): Promise<void>;
	/** The service that tells users about references. */
	referenceService(options: ReferenceServiceOptions): ServiceImpl<typeof ReferenceService>;
	/** The service that tells operators about deployments, and settles references. It authorizes nobody to call it. */
	deploymentService(
		options: Pick<DeploymentServiceOptions, "callerOf">,
	): ServiceImpl<typeof DeploymentService>;
	/** Starts the controllers of references. */
	control(options: ControlOptions): void;
	/** Reports on the controllers; `undefined` before `control`. */
	controllers(): ControllerReports | undefined;
	/** The current measurements. */
	metrics(): ReferenceMetrics;
	/** Stops everything that runs, and waits until it has stopped. */
	close(): Promise<void>;
}

/**
 * Puts references around a storage, and makes their schema the active one.
 *
 * @throws StorageError if the storage can't be written; Refused FailedPrecondition if the schema lacks versions that other
 *   deployments reference, and `dropsVersionsInUse` is not set: then nothing has changed.
 */
export async function openReferences(options: ReferencesOptions): Promise<References> {
	const { descriptor, identity, callers, limits } = options;
	const { runtime = systemRuntime, logger = silentLogger } = options;
	const isMeta = options.deployment?.service === metaService;
	const backend = isMeta ? recordDeletedDeployments(options.backend, runtime) : options.backend;
	const ownServers = () => {
		const { endpoints, version } = constraints.context.index;
		return { addresses: announcedAddresses(endpoints), version, endpoints };
	};
	const dropped = () => constraints.context.index.dropped;
	const isActive = async () =>
		isPlanted("announce a version that is no longer active") ||
		(await isSchemaActive({ backend, descriptor }));
	const registry = registryOf({
		...{ ...options, backend, runtime, logger },
		...{ ownServers, dropped, isActive },
	});
	await registry?.open();
	const environment =
		registry ?? localEnvironment(await ensureDeploymentUid(backend, runtime, identity?.uid));
	const constraints = createConstraints({
		...{ backend, descriptor, environment, runtime, logger },
		...(callers && { callers }),
		...(limits && { limits }),
	});
	return beginReferences(options, constraints, registry);
}

/** The parts of opened references: not for users, but for tests of the parts. */
export interface ReferencesParts {
	readonly constraints: Constraints;
	/** `undefined` without other deployments. */
	readonly registry: DeploymentRegistry | undefined;
	/** `undefined` before `control`. */
	readonly manager: ReferenceManager | undefined;
}

/** The parts of references that `openReferences` has opened. */
export function partsOf(references: References): ReferencesParts {
	if (!(references instanceof OpenReferences)) {
		throw new Error("these references were not opened here");
	}
	return references.parts;
}

type BegunOptions = Pick<
	ReferencesOptions,
	"deployment" | "leases" | "dropsVersionsInUse" | "onSuperseded" | "onFailure"
>;

/**
 * Makes the schema of the constraints the active one.
 *
 * @param registry - the environment of the constraints, if that is to be discovered. Other environments are taken as they
 *   are.
 * @throws as `openReferences` does.
 */
export async function beginReferences(
	options: BegunOptions,
	constraints: Constraints,
	registry?: DeploymentRegistry,
): Promise<References> {
	await registry?.load();
	let replacesOther = false;
	if (!isPlanted("begin a schema without making it the active one")) {
		const dropsInUse = options.dropsVersionsInUse ?? false;
		replacesOther = await constraints.schemaPass.begin({ dropsInUse });
	}
	return new OpenReferences(options, constraints, registry, replacesOther);
}

function registryOf(
	options: ReferencesOptions &
		Pick<ConstraintContext, "runtime" | "logger"> &
		Pick<DeploymentRegistryOptions, "ownServers" | "dropped" | "isActive">,
): DeploymentRegistry | undefined {
	const { backend, deployment, descriptor, identity, runtime, logger } = options;
	const { ownServers, dropped, isActive } = options;
	if (deployment === undefined) {
		return undefined;
	}
	const { metaAddresses, connect, ownService, ...configuration } = deployment;
	const version = configuration.version ?? descriptor.versions.at(-1) ?? "v1";
	return new DeploymentRegistry({
		deployment: { ...configuration, version },
		...(identity && { storageIncarnation: identity.incarnation }),
		...(configuration.service === metaService && { ownMeta: ownService }),
		...{ descriptor, backend, metaAddresses, connect, ownServers, dropped, isActive },
		...{ runtime, logger },
	});
}

/** The pause after this server has registered its address, before it looks whether that must be done again. */
const moveIntervalMs = 1_000;

class OpenReferences implements References {
	readonly #options: BegunOptions;
	readonly #constraints: Constraints;
	readonly #registry: DeploymentRegistry | undefined;
	readonly #phases: Phases;
	readonly #steps: RetriedSteps;
	readonly #end = new AbortController();
	readonly #running = new Set<Promise<unknown>>();
	readonly #configuredVersion: string;
	#manager: ReferenceManager | undefined;
	/** Aborts when a schema other than this server's becomes active. */
	#superseded = new AbortController();
	#supersededBy: string | undefined;
	/** Grows when the schema of this server has become active in place of another one: once it is complete, if that is later. */
	#activations: number;
	/** The value of `#activations` when the version was announced last: another one may be registered since. */
	#announcedAt = 0;
	#isSwitching = false;
	/** Whether this server registers its address, or pauses after that. */
	#isMoving = false;
	/** Whether the registry or the servers have changed since then: the last try may not have seen that. */
	#mustCheckAddress = false;

	constructor(
		options: BegunOptions,
		constraints: Constraints,
		registry: DeploymentRegistry | undefined,
		replacesOther: boolean,
	) {
		const { runtime, logger } = constraints.context;
		this.#options = options;
		this.#constraints = constraints;
		this.#registry = registry;
		this.#activations = replacesOther ? 1 : 0;
		this.#configuredVersion = constraints.context.environment.self.version;
		this.#phases = new Phases(logger);
		this.#steps = new RetriedSteps(runtime, logger);
		const { index } = constraints.context;
		index.onRegistryEntry((entry) => registry?.followStored(entry));
		this.#track(constraints.run(this.#end.signal));
		const unfollow = followActiveSchema(constraints.context, (schema) => this.#onSchema(schema));
		this.#end.signal.addEventListener("abort", unfollow, { once: true });
		this.#phases.reach("schema-begun");
	}

	get parts(): ReferencesParts {
		return {
			constraints: this.#constraints,
			registry: this.#registry,
			manager: this.#manager,
		};
	}

	get store(): StorageBackend {
		return this.#constraints.store;
	}

	get service(): ServiceImpl<typeof SchemaMixinService> {
		return this.#constraints.service;
	}

	referenceService(options: ReferenceServiceOptions): ServiceImpl<typeof ReferenceService> {
		return createReferenceService(this.#constraints.context, options);
	}

	deploymentService(
		options: Pick<DeploymentServiceOptions, "callerOf">,
	): ServiceImpl<typeof DeploymentService> {
		return createDeploymentService(this.#constraints.context, {
			...options,
			store: this.#constraints.store,
			outdatedSince: () => this.#registry?.outdatedSince,
		});
	}

	get state(): ReferencesState {
		const problems = new Map(this.#steps.problems);
		if (this.#registry?.state.kind === "registering" && this.#registry.state.lastProblem !== "") {
			problems.set("register the deployment", this.#registry.state.lastProblem);
		}
		const imports = this.#registry?.importProblems ?? [];
		if (imports.length > 0) {
			problems.set("reference imported services", imports.join("; "));
		}
		return {
			reached: this.#phases.reached,
			problems,
			registryOutdatedSince: this.#registry?.outdatedSince,
			awaitedReports: this.#registry?.awaited ?? [],
			superseded: this.#supersededBy,
		};
	}

	until(phase: ReferencesPhase, signal: AbortSignal): Promise<void> {
		return this.#phases.until(phase, signal);
	}

	controllers(): ControllerReports | undefined {
		return this.#manager?.reports;
	}

	unreferenced(id: ID): Mutation {
		return assertUnreferenced(id);
	}

	metrics(): ReferenceMetrics {
		return this.#constraints.metrics();
	}

	async discover(signal: AbortSignal): Promise<void> {
		const ends = AbortSignal.any([signal, this.#end.signal]);
		const registry = this.#registry;
		if (registry === undefined) {
			this.#phases.reach("discovered");
			this.#phases.reach("succession-settled");
			await this.#constraints.schemaPass.complete(ends);
			this.#phases.reach("schema-complete");
			this.#phases.reach("announced");
			this.#phases.reach("serving");
			return;
		}
		await this.#constraints.context.index.ready(ends);
		this.#track(registry.run(this.#end.signal).catch((failure) => this.#failed(failure)));
		if (!isPlanted("serve before the other deployments are known")) {
			await registry.ready(ends);
		}
		this.#phases.reach("discovered");
		registry.onChange(() => this.#follow(registry));
		this.#follow(registry);
		const { context } = this.#constraints;
		let isOwn = true;
		await this.#steps.untilDone("establish references again", ends, async () => {
			isOwn = await reestablishOwnReferences(context, ends);
		});
		if (!isOwn) {
			registry.giveUp();
			return;
		}
		this.#phases.reach("succession-settled");
		this.#phases.reach("serving");
		this.#followUid(registry);
		this.#keepEndpoint(registry);
		this.#track(this.#announce(registry));
	}

	/**
	 * Another server of this deployment may have given up the uid: then this one must not write under it any longer. The
	 * index may not have the uid yet that this server has recorded, and may never have it: when it has fallen behind, it
	 * begins again with what is stored then.
	 */
	#followUid(registry: DeploymentRegistry): void {
		const { index } = this.#constraints.context;
		let wasSeen = false;
		const follow = () => {
			const { uid } = registry.self;
			const record = index.deployment?.record;
			if (record?.uid === uid) {
				wasSeen = true;
			} else if (wasSeen || (record !== undefined && hasGivenUp(record, uid))) {
				registry.giveUp();
			}
		};
		this.#end.signal.addEventListener("abort", index.onDeployment(follow), { once: true });
		follow();
	}

	/** Names this server to other deployments while it runs. */
	#keepEndpoint(registry: DeploymentRegistry): void {
		const { leases, deployment } = this.#options;
		const { backend, index, runtime, logger } = this.#constraints.context;
		if (leases === undefined || deployment === undefined) {
			return;
		}
		const addresses = ownAddresses(deployment);
		const records = new EndpointRecords({ backend, index, leases, addresses, runtime, logger });
		this.#track(records.run(this.#end.signal));
		const unfollow = index.onEndpoints(() => this.#keepRegisteredAddress(registry, addresses));
		this.#end.signal.addEventListener("abort", unfollow, { once: true });
		registry.onChange(() => this.#keepRegisteredAddress(registry, addresses));
	}

	/** Registers the address of this server if none of the deployment runs at the registered one. */
	#keepRegisteredAddress(registry: DeploymentRegistry, own: EndpointAddresses): void {
		const address = own.announced;
		const { index, runtime } = this.#constraints.context;
		const isWrong = () =>
			registry.registeredAddress !== address &&
			index.endpoints.has(endpointName(own)) &&
			!announcedAddresses(index.endpoints).includes(registry.registeredAddress) &&
			!isPlanted("stay registered at an address where no server runs");
		if (this.#isMoving) {
			if (!isPlanted("ignore changes while an address is registered")) {
				this.#mustCheckAddress = true;
			}
			return;
		}
		if (registry.registeredAddress === "" || !isWrong()) {
			return;
		}
		this.#isMoving = true;
		this.#mustCheckAddress = false;
		const { signal } = this.#end;
		const moved = this.#steps.untilDone("register the address of this server", signal, () =>
			isWrong() ? registry.announceAddress(address) : Promise.resolve(),
		);
		// Two servers whose indexes lack each other would replace each other's address without a pause.
		const paused = moved.then(() => sleep(runtime.clock, moveIntervalMs, signal).catch(() => {}));
		this.#track(
			paused.finally(() => {
				this.#isMoving = false;
				if (this.#mustCheckAddress && !signal.aborted) {
					this.#keepRegisteredAddress(registry, own);
				}
			}),
		);
	}

	control(options: ControlOptions): void {
		const { onFailure } = this.#options;
		const manager = new ReferenceManager({ ...options, constraints: this.#constraints, onFailure });
		this.#manager = manager;
		this.#track(manager.run(this.#end.signal).catch(onFailure));
		this.#phases.reach("controlled");
	}

	async close(): Promise<void> {
		this.#end.abort(new Error("the server is stopping"));
		await Promise.all(this.#running);
	}

	/** What must go on until the end has stopped. */
	#failed(failure: unknown): void {
		if (!this.#end.signal.aborted) {
			this.#options.onFailure(failure);
		}
	}

	/** `close` waits for it. Steps reject only when they are aborted. */
	#track(running: Promise<unknown>): void {
		const ended = running.catch(() => {}).finally(() => this.#running.delete(ended));
		this.#running.add(ended);
	}

	/**
	 * While another schema is active, this server can't write: it is not ready, and leaves the leases to servers
	 * that can. It never activates its own schema again by itself, because two servers would alternate.
	 */
	#onSchema(schema: ActiveSchema): void {
		const { leases, onSuperseded } = this.#options;
		if (schema.kind === "other") {
			const reason = supersededBy(schema);
			this.#supersededBy = reason;
			this.#superseded.abort(new Error(reason));
			onSuperseded?.(reason);
			leases?.suspend(new Error(reason));
			return;
		}
		this.#supersededBy = undefined;
		this.#superseded = new AbortController();
		onSuperseded?.(undefined);
		leases?.resume();
		const ends = AbortSignal.any([this.#superseded.signal, this.#end.signal]);
		this.#track(this.#resume(ends));
	}

	/** The server that activated the schema again may have stopped before that was complete, and its version announced. */
	async #resume(signal: AbortSignal): Promise<void> {
		await this.#complete(signal);
		if (!isPlanted("announce nothing when a schema is active again")) {
			this.#activations += 1;
		}
		if (this.#registry !== undefined) {
			this.#follow(this.#registry);
		}
	}

	async #complete(signal: AbortSignal): Promise<void> {
		await this.#steps.untilDone("complete the schema of references", signal, () =>
			this.#constraints.schemaPass.complete(signal),
		);
		this.#phases.reach("schema-complete");
	}

	/** Announces the version once the schema is complete, and again when operators request another. */
	async #announce(registry: DeploymentRegistry): Promise<void> {
		const { signal } = this.#end;
		await this.#complete(signal);
		await this.#steps.untilDone("announce the version", signal, () =>
			this.#announceWanted(registry),
		);
		this.#phases.reach("announced");
		this.#follow(registry);
		for (const problem of registry.importProblems) {
			this.#constraints.context.logger.warn({ problem }, "new references to a service are refused");
		}
	}

	/** @throws ConnectError if it can't be announced now. Retry. */
	async #announceWanted(registry: DeploymentRegistry): Promise<void> {
		const activations = this.#activations;
		const competes =
			activations !== this.#announcedAt && !isPlanted("leave a version that is registered already");
		await registry.announce(this.#wanted(registry), { competes });
		this.#announcedAt = activations;
	}

	/** The version that operators want, if this server has it. */
	#wanted(registry: DeploymentRegistry): string {
		const { versions } = this.#constraints.context.descriptor;
		const { wantedVersion } = registry;
		return versions.includes(wantedVersion) ? wantedVersion : this.#configuredVersion;
	}

	/** Follows the Deployment of this server: operators delete it, or request another version. */
	#follow(registry: DeploymentRegistry): void {
		if (registry.state.kind === "deleted") {
			const { reason } = registry.state;
			this.#options.onFailure(new Error(`${reason}: restart the server to register it again`));
			return;
		}
		if (registry.state.kind === "succeeded") {
			this.#options.onFailure(new Error(registry.state.reason));
			return;
		}
		const isOutdated =
			this.#wanted(registry) !== registry.self.version || this.#activations !== this.#announcedAt;
		const mayAnnounce = this.#phases.has("announced") && this.#supersededBy === undefined;
		if (mayAnnounce && !this.#isSwitching && isOutdated) {
			this.#isSwitching = true;
			this.#track(this.#switchVersion(registry));
		}
	}

	async #switchVersion(registry: DeploymentRegistry): Promise<void> {
		try {
			await this.#steps.untilDone("switch the version", this.#end.signal, () =>
				this.#announceWanted(registry),
			);
		} finally {
			this.#isSwitching = false;
		}
		// Operators may have requested another version meanwhile.
		if (!this.#end.signal.aborted) {
			this.#follow(registry);
		}
	}
}
