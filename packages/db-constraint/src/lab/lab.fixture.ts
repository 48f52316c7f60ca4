import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import type { ID, Resource } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import {
	type Caller,
	idOf,
	newUlid,
	type ResourceType,
	resourceOf,
	tenancyOf,
} from "@plinth/resource";
import { type CallerAuthenticator, ensureDefaultTenancy } from "@plinth/resource-service";
import { LocalLeases, SuspendableLeases } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { createConstraintStore } from "../commit/constraint-store.ts";
import { deletion } from "../commit/removals.ts";
import { type Constraints, createConstraints } from "../node/constraints.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { beginReferences } from "../node/open-references.ts";
import { type DeploymentInfo, type Environment, takenOver } from "../registry/environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { updateDeploymentRecord } from "../succession/deployment-record.ts";
import { collectFailures } from "./collected-failures.fixture.ts";
import { withLocalFences } from "./local-fences.fixture.ts";
import { controllerClients } from "./own-client.fixture.ts";

/** A deployment of a lab. */
export interface LabSpec {
	readonly name: string;
	readonly service: string;
	readonly region: string;
	readonly types: readonly ResourceType[];
	readonly foreignTypes?: readonly ResourceType[];
}

/** Decorates the transport from one deployment to another. */
export type TransportDecorator = (transport: Transport, from: string, to: string) => Transport;

/** Several deployments in one process, on a seeded scheduler and a fake clock. */
export class Lab {
	readonly runtime: SeededRuntime;
	readonly deployments = new Map<string, LabDeployment>();
	/** The uids of deleted deployments. */
	readonly deleted = new Set<string>();
	/** Called when the known deployments change. */
	readonly listeners = new Set<() => void>();
	readonly #decorateTransport: TransportDecorator;
	readonly #limits: Partial<ConstraintLimits>;

	constructor(
		seed: number,
		limits: Partial<ConstraintLimits> = {},
		decorateTransport: TransportDecorator = (it) => it,
	) {
		this.runtime = seededRuntime({ seed, maxSteps: 500_000 });
		this.#limits = limits;
		this.#decorateTransport = decorateTransport;
	}

	/** Adds a deployment and starts it. */
	async add(
		spec: LabSpec,
		decorate = (backend: StorageBackend) => backend,
	): Promise<LabDeployment> {
		const uid = newUlid(this.runtime);
		const backend = decorate(createMemoryBackend({ runtime: this.runtime }));
		const deployment = new LabDeployment(this, { ...spec, uid }, backend, this.#limits);
		this.deployments.set(spec.name, deployment);
		await this.run(deployment.start());
		return deployment;
	}

	/** Replaces a deployment by a successor, whose storage has only the given resources, as they were stored. */
	async succeed(
		before: LabDeployment,
		resources: readonly Resource[],
		backend: StorageBackend = createMemoryBackend({ runtime: this.runtime }),
	): Promise<LabDeployment> {
		before.crash();
		for (const resource of resources) {
			await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
		const uid = newUlid(this.runtime);
		const predecessorUid = before.info.uid;
		await updateDeploymentRecord(backend, this.runtime, (record) => ({
			...record,
			uid,
			predecessorUid,
		}));
		const after = new LabDeployment(this, { ...before.spec, uid }, backend, this.#limits);
		Object.assign(after.info, { predecessorUid, established: false });
		this.deployments.set(before.spec.name, after);
		await this.run(after.start());
		return after;
	}

	/** Runs everything until the promise has settled. */
	run<T>(promise: Promise<T>): Promise<T> {
		return this.runtime.scheduler.run(promise);
	}

	/** Deletes a deployment. A permanent record stays. */
	retire(deployment: LabDeployment): void {
		deployment.crash();
		this.deployments.delete(deployment.spec.name);
		this.deleted.add(deployment.info.uid);
		this.changed();
	}

	/** Announces another version of a deployment. */
	announce(deployment: LabDeployment, version: string): void {
		Object.assign(deployment.info, { version });
		this.changed();
	}

	/** The known deployments have changed. */
	changed(): void {
		for (const listener of this.listeners) {
			listener();
		}
	}

	/** Advances the clock. */
	async pass(ms: number): Promise<void> {
		await this.runtime.scheduler.advance(ms);
	}

	/** The ID of a resource. */
	idOf(resource: Resource): ID {
		return idOfResource(resource);
	}

	/** A client of a deployment's mixin service. */
	client(from: LabDeployment, to: LabDeployment) {
		const transport = this.transport(from.info.name, to.info.uid);
		if (transport === undefined) {
			throw new Error(`${to.info.name} is down`);
		}
		return createClient(SchemaMixinService, transport);
	}

	/** The key of a resource of a deployment. */
	keyOf(deployment: LabDeployment, id: ID) {
		return keyOf(id, deployment.info.region);
	}

	/** The transport from one deployment to another, by uid; undefined if it is down. */
	transport(from: string, uid: string): Transport | undefined {
		for (const to of this.deployments.values()) {
			if (to.info.uid === uid && to.running) {
				return this.#decorateTransport(to.running.transport, from, to.info.name);
			}
		}
		return undefined;
	}
}

interface Running {
	readonly constraints: Constraints;
	readonly transport: Transport;
	/** Ends everything that is in progress, and resolves when it has ended. */
	stop(): Promise<void>;
}

/** A deployment: a storage that persists, and a server that starts and crashes. */
export class LabDeployment {
	readonly lab: Lab;
	readonly spec: LabSpec;
	readonly info: DeploymentInfo;
	readonly backend: StorageBackend;
	readonly failures: unknown[] = [];
	/** Decides on callers of other deployments, from the next start on; all are accepted if it is absent. */
	callers: CallerAuthenticator | undefined;
	readonly #limits: Partial<ConstraintLimits>;
	running: Running | undefined;

	constructor(
		lab: Lab,
		spec: LabSpec & { readonly uid: string },
		backend: StorageBackend,
		limits: Partial<ConstraintLimits>,
	) {
		this.lab = lab;
		this.spec = spec;
		this.backend = backend;
		this.#limits = limits;
		const { uid, name, service, region } = spec;
		this.info = { uid, name, service, region, version: "v1", disabled: false, predecessorUid: "" };
	}

	/** The running server. */
	get current(): Running {
		if (this.running === undefined) {
			throw new Error(`${this.spec.name} is down`);
		}
		return this.running;
	}

	/** The decorated storage of a server with another schema. */
	withDescriptor(descriptor: ServiceDescriptor): StorageBackend {
		const { context, holderQuery } = this.current.constraints;
		return createConstraintStore({ ...context, descriptor }, holderQuery);
	}

	get store(): StorageBackend {
		if (this.running === undefined) {
			throw new Error(`${this.spec.name} is down`);
		}
		return this.running.constraints.store;
	}

	async start(): Promise<void> {
		const { runtime } = this.lab;
		const { types, foreignTypes = [], service } = this.spec;
		await ensureDefaultTenancy(this.backend, runtime);
		const local = new LocalLeases();
		const constraints = createConstraints({
			backend: withLocalFences(this.backend, local),
			descriptor: new ServiceDescriptor({ types, foreignTypes, service }),
			environment: this.#environment(),
			runtime,
			logger: collectFailures(this.failures),
			limits: this.#limits,
			...(this.callers && { callers: this.callers }),
		});
		const leases = new SuspendableLeases(local);
		const onFailure = (failure: unknown) => this.failures.push(failure);
		const references = await beginReferences({ leases, onFailure }, constraints);
		const transport = createInProcessTransport(
			(router) => router.service(SchemaMixinService, constraints.service),
			runtime,
		);
		await references.discover(new AbortController().signal);
		references.control({ ...controllerClients(constraints.store, types, runtime), leases });
		this.running = { constraints, transport, stop: () => references.close() };
		this.lab.changed();
	}

	/** Stops abruptly, whatever is in progress. */
	crash(): void {
		void this.running?.stop();
		this.running = undefined;
	}

	id(type: ResourceType, name: string): ID {
		return idOf(type, name);
	}

	/** Creates or replaces a resource. */
	async write(
		resource: Resource,
		finalizers = "",
		caller?: Caller,
		dryRun = false,
	): Promise<Resource> {
		const { runtime } = this.lab;
		const stored = resource.id && (await this.backend.lookup(resource.id));
		const metadata = finalizers ? { finalizers } : { ...resource.metadata };
		const next: Resource = {
			...resource,
			metadata: { ...stored?.metadata, ...metadata },
			id: { ...idOfResource(resource), uid: stored?.id?.uid ?? newUlid(runtime) },
			generation: newUlid(runtime),
		};
		const { resources } = await this.store.commit(
			[{ op: "put", resource: next, expectedVersion: stored?.version ?? "" }],
			{ caller, dryRun },
		);
		return resources[0] ?? next;
	}

	/** Deletes a resource, or marks it. */
	async delete(id: ID, caller?: Caller): Promise<void> {
		const stored = await this.backend.lookup(id);
		if (stored !== undefined) {
			const mutations = deletion(this.lab.runtime, stored);
			if (mutations.length > 0) {
				await this.store.commit(mutations, { caller });
			}
		}
	}

	/** The stored resource. */
	read(id: ID): Promise<Resource | undefined> {
		return this.backend.lookup(id);
	}

	/** The shadow of a resource. */
	async shadow(id: ID) {
		return (await readShadow(this.backend, shadowName(keyOf(id, this.info.region))))?.shadow;
	}

	#environment(): Environment {
		const { lab, info } = this;
		const all = () => [...lab.deployments.values()].map((each) => each.info);
		const find = (service: string, region: string) =>
			all().find((each) => each.service === service && each.region === region);
		return {
			self: info,
			deployments: all,
			byUid: (uid) => all().find((each) => each.uid === uid),
			successorOf: (uid) => all().findLast((each) => takenOver(each).includes(uid)),
			find,
			findOwner: (group, service, region) =>
				find(service === "" ? info.service : (service ?? group), region),
			client: (uid) => {
				const transport = lab.transport(info.name, uid);
				if (transport === undefined) {
					throw new ConnectError(`deployment ${uid} is down`, Code.Unavailable);
				}
				return createClient(SchemaMixinService, transport);
			},
			isDeleted: async (uid) => lab.deleted.has(uid),
			onChange: (listener) => {
				lab.listeners.add(listener);
				return () => lab.listeners.delete(listener);
			},
		};
	}
}

function idOfResource(resource: Resource): ID {
	if (resource.id === undefined) {
		throw new Error("a resource without an ID");
	}
	return resource.id;
}

/** A new resource of a type. */
export function make(
	type: ResourceType,
	name: string,
	data: Parameters<typeof resourceOf>[1]["data"],
): Resource {
	const id = {
		...idOf(type, name),
		tenancy: tenancyOf({ partition: "default", namespace: "default" }),
	};
	return resourceOf(type, { id, ...(data && { data }) });
}
