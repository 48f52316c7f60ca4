import { create, type DescMessage } from "@bufbuild/protobuf";
import {
	type OwnerReference,
	OwnerReferenceSchema,
	type Reference,
	type Resource,
} from "@plinth/proto";
import {
	addFinalizer,
	deletionTimestampKey,
	finalizersOf,
	idOf,
	isMarkedForDeletion,
	Namespace,
	newUlid,
	referenceTo,
	removeFinalizer,
	resourceOf,
	tenancyOf,
} from "@plinth/resource";
import { deletionWithTombstone } from "@plinth/resource-service";
import type { Mutation } from "@plinth/storage";
import { deletion } from "../commit/removals.ts";
import { anyone } from "../lab/anyone.fixture.ts";
import { alpha, namespaces, regions } from "./deployment.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";
import type { TrackedResource } from "./tracked-resources.fixture.ts";

const names = ["a", "b"] as const;
const finalizer = "user/holds";

/** The resource that all users of a crowded workload use, in the first deployment. */
const crowded = { name: names[0], namespace: namespaces[0], region: regions[0] };

/** A user, who takes one step after another at any available server. */
export class User {
	readonly #sim: SimulationContext;
	readonly #name: string;
	#written = 0;

	constructor(sim: SimulationContext, name: string) {
		this.#sim = sim;
		this.#name = name;
	}

	/** Takes this many steps. */
	async work(times: number): Promise<void> {
		const sim = this.#sim;
		for (let done = 0; done < times; done++, sim.steps.taken++) {
			await sim.wait(sim.random.next() * sim.pick(sim.workload.pausesMs));
			await this.#step(done < times / 4);
		}
	}

	/** Writes this many resources. */
	async write(times: number): Promise<void> {
		for (let done = 0; done < times; done++) {
			await this.#step(true);
		}
	}

	async #step(isWrite: boolean): Promise<void> {
		const deployment = this.#drawDeployment();
		const server = deployment && (await this.#await(deployment));
		if (deployment !== undefined && server !== undefined) {
			await this.attempt(server, this.#drawStep(deployment, isWrite));
		}
	}

	/** Waits up to a minute for a server that serves. */
	async #await(deployment: SimulatedDeployment): Promise<SimulatedServer | undefined> {
		const sim = this.#sim;
		for (let tries = 0; tries < 60; tries++) {
			const server = serverOf(sim, deployment);
			if (server !== undefined) {
				return server;
			}
			await sim.wait(1_000);
		}
		return undefined;
	}

	/** Takes a step at a server. Returns false if the step fails or the server crashes. */
	async attempt(
		server: SimulatedServer,
		[what, run]: readonly [string, (server: SimulatedServer) => Promise<unknown>],
	): Promise<boolean> {
		const { trace } = this.#sim;
		trace.add(this.#name, () => `at ${server.name}: ${what}`);
		try {
			await server.lifetime.observe(run(server), () => new Error("the server crashed"));
			trace.add(this.#name, () => `at ${server.name}: ${what}: done`);
			return true;
		} catch (failure) {
			this.#sim.observer.failed(this.#name, failure);
			return false;
		}
	}

	/** Writes a resource without references. Returns whether that succeeds. */
	probe(server: SimulatedServer): Promise<boolean> {
		const { runtime } = this.#sim;
		const { type } = server.schema;
		const id = { ...idOf(type, `probe-${newUlid(runtime)}`), uid: newUlid(runtime) };
		const resource = { ...resourceOf(type, { id }), generation: newUlid(runtime) };
		return this.attempt(server, [
			"write a resource without references",
			(it) => it.store.commit([{ op: "put", resource, expectedVersion: "" }]),
		]);
	}

	/** Writes a new resource, at a deployment or one server, with a finalizer of users if it is held. Returns whether that succeeds. */
	create(
		at: SimulatedDeployment | SimulatedServer,
		name: string,
		{
			data = {},
			isHeld = false,
			ownerReferences = [],
		}: {
			readonly data?: Record<string, unknown>;
			readonly isHeld?: boolean;
			readonly ownerReferences?: readonly OwnerReference[];
		} = {},
	): Promise<boolean> {
		const sim = this.#sim;
		const server = "store" in at ? at : serverOf(sim, at);
		if (!server?.isOpen) {
			return Promise.resolve(false);
		}
		const { type } = server.schema;
		const tenancy = tenancyOf({ partition: "default", namespace: namespaces[0] });
		const id = { ...idOf(type, name), tenancy, uid: newUlid(sim.runtime) };
		const resource = resourceOf(type, { id, data: create<DescMessage>(type.schema, data) });
		const generation = newUlid(sim.runtime);
		const written = { ...resource, generation, ownerReferences: [...ownerReferences] };
		if (isHeld) {
			addFinalizer(written, finalizer);
		}
		return this.attempt(server, [
			`create ${name}`,
			(it) => it.store.commit([{ op: "put", resource: written, expectedVersion: "" }]),
		]);
	}

	/**
	 * Writes a new resource that is to be deleted with a resource of the first service, in another deployment.
	 *
	 * @param name - of the target.
	 * @param as - its own name.
	 * @returns whether that succeeds.
	 */
	reference(
		holder: SimulatedDeployment | SimulatedServer,
		target: SimulatedDeployment,
		name: string,
		as = name,
	): Promise<boolean> {
		const reference = {
			...referenceTo({ type: alpha.type.type, name }),
			tenancy: tenancyOf({ partition: "default", namespace: namespaces[0] }),
			region: target.info.region,
		};
		const data = { [holder.schema.cascading]: reference };
		return this.create(holder, as, { data, isHeld: true });
	}

	#drawDeployment(): SimulatedDeployment | undefined {
		const sim = this.#sim;
		const { deployments, workload } = sim;
		if (this.#seesHeldCommit() && sim.happens(0.7)) {
			return deployments[0];
		}
		const draw = sim.random.next();
		if (draw < workload.home + workload.guest) {
			return draw < workload.home ? deployments[0] : deployments.at(-1);
		}
		return deployments[sim.below(deployments.length)];
	}

	#drawStep(
		deployment: SimulatedDeployment,
		isWrite: boolean,
	): readonly [string, (server: SimulatedServer) => Promise<unknown>] {
		const sim = this.#sim;
		const isHome = sim.workload.isCrowded && deployment === sim.deployments[0];
		const draw = isWrite ? 0 : isHome ? this.#drawAtHome() : sim.random.next();
		const { name, namespace } = isHome
			? crowded
			: this.#drawName(({ deployment: keeper }) => keeper === deployment, draw < 0.5 ? 0.4 : 0.9);
		if (draw >= 1 - sim.workload.evicting) {
			return [
				`delete the namespace "other" of ${deployment.info.name}`,
				(server) => this.#deleteNamespace(server),
			];
		}
		if (draw < 0.5) {
			return [`write ${namespace}/${name}`, (server) => this.#write(server, name, namespace)];
		}
		if (draw < 0.9) {
			const dryRun = sim.happens(0.05);
			return [
				`delete ${namespace}/${name}${dryRun ? " (dry run)" : ""}`,
				(server) => this.delete(server, name, namespace, dryRun),
			];
		}
		return [`release ${namespace}/${name}`, (server) => this.release(server, name, namespace)];
	}

	/** Whether a held commit may reference the crowded resource: a good time to delete it. */
	#seesHeldCommit(): boolean {
		const { workload, held } = this.#sim;
		return workload.isCrowded && held > 0;
	}

	/** Re-creates the crowded resource soon after its deletion, and deletes it again soon. */
	#drawAtHome(): number {
		const sim = this.#sim;
		const [home] = sim.deployments;
		const exists = [...sim.observer.records.resources.values()].some(
			({ deployment, resource }) =>
				deployment === home &&
				resource.id?.name === crowded.name &&
				resource.id.tenancy?.namespace === crowded.namespace,
		);
		if (exists && this.#seesHeldCommit()) {
			return 0.6;
		}
		return exists ? 0.35 + sim.random.next() * 0.6 : sim.random.next() * 0.55;
	}

	/** The name of a known resource that fits, with the given probability; otherwise a random name. */
	#drawName(
		fits: (tracked: TrackedResource) => boolean,
		known: number,
	): { readonly name: string; readonly namespace: string; readonly region: string } {
		const sim = this.#sim;
		if (sim.happens(known)) {
			const all = [...sim.observer.records.resources.values()].filter(fits);
			const one = all[sim.below(all.length)];
			if (one?.resource.id !== undefined) {
				const { name, tenancy } = one.resource.id;
				const { region } = one.deployment.info;
				return { name, namespace: tenancy?.namespace ?? "", region };
			}
		}
		const namespace = sim.happens(sim.workload.elsewhere) ? namespaces[1] : namespaces[0];
		return { name: sim.pick(names), namespace, region: sim.pick(regions) };
	}

	async #write(server: SimulatedServer, name: string, namespace: string): Promise<void> {
		const sim = this.#sim;
		const type = sim.pick(server.schema.written);
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const { storage } = server;
		const [stored, unit] = await Promise.all([
			storage.lookup(id),
			storage.lookup(idOf(Namespace, namespace)),
		]);
		if (
			unit?.id === undefined ||
			isMarkedForDeletion(unit) ||
			(stored && isMarkedForDeletion(stored))
		) {
			return;
		}
		const ownerReferences = sim.happens(0.75)
			? (stored?.ownerReferences ?? [])
			: this.#owners(id.name);
		const fresh = resourceOf(type, { id, data: this.#data(server, type) });
		const resource: Resource = {
			...fresh,
			...stored,
			id: { ...id, uid: stored?.id?.uid ?? newUlid(sim.runtime) },
			...(fresh.data && { data: fresh.data }),
			generation: newUlid(sim.runtime),
			metadata: { ...stored?.metadata },
			ownerReferences: [...ownerReferences],
		};
		if (stored === undefined && sim.happens(sim.workload.holding)) {
			addFinalizer(resource, finalizer);
		}
		// Otherwise the deployment references by itself, which no version prevents.
		const caller = sim.versionsDiffer ? anyone : undefined;
		await server.store.commit(
			[
				{ op: "put", resource, expectedVersion: stored?.version ?? "" },
				{ op: "assert", id: unit.id, expectedVersion: unit.version },
			],
			{ caller },
		);
	}

	#data(server: SimulatedServer, written: SimulatedSchema["type"]) {
		const sim = this.#sim;
		this.#written += 1;
		const note = `${this.#name} ${this.#written}`;
		const isCrowd = sim.workload.isCrowded && server.deployment === sim.deployments[0];
		const isDense = sim.hasManyReferences;
		const crowdShare = isDense ? 0.5 : 0.2;
		const factor = isDense ? 2 : 1;
		const maybe = (chance: number, type = alpha.type) =>
			sim.happens(isCrowd ? chance * crowdShare : Math.min(0.8, chance * factor))
				? this.#reference(type)
				: undefined;
		const needs = maybe(sim.workload.blocking);
		const belongsTo = maybe(sim.workload.cascading);
		const likes = [maybe(0.25), maybe(0.15)].flatMap((it) => it ?? []);
		const common = { note, likes, ...(needs && { needs }), ...(belongsTo && { belongsTo }) };
		const { type } = server.deployment.service;
		const next = type !== alpha.type && sim.happens(0.3) ? this.#reference(type) : undefined;
		const later =
			sim.switches && sim.happens(isDense ? 0.7 : 0.3) ? this.#reference(alpha.type) : undefined;
		const init = { ...common, ...(next && { next }), ...(later && { later }) };
		return create<DescMessage>(written.schema, init);
	}

	#reference(type: SimulatedDeployment["service"]["type"]): Reference {
		const sim = this.#sim;
		const { name, namespace, region } =
			type === alpha.type && sim.happens(sim.workload.following)
				? crowded
				: this.#drawName(({ deployment }) => deployment.service.type === type, 0.9);
		return {
			...referenceTo({ type: type.type, name }),
			tenancy: tenancyOf({ partition: "default", namespace }),
			region,
		};
	}

	/** Users know the uids of the resources that exist, or that they saw before. */
	#owners(own: string): readonly OwnerReference[] {
		const sim = this.#sim;
		const all = [...sim.observer.records.resources.values()];
		const owner = all[sim.below(all.length)];
		if (owner?.resource.id === undefined || sim.happens(0.2)) {
			return [];
		}
		const { id } = owner.resource;
		if (id.name === own) {
			return [];
		}
		return [
			create(OwnerReferenceSchema, {
				name: id.name,
				uid: id.uid,
				region: owner.deployment.info.region,
				unsetOnDelete: sim.happens(0.3),
				requiresOwnerReference: sim.happens(0.15),
				...(id.type && { type: id.type }),
				...(id.tenancy && { tenancy: id.tenancy }),
			}),
		];
	}

	/** Deletes a resource like the resource service. */
	async delete(
		server: SimulatedServer,
		name: string,
		namespace: string,
		dryRun = false,
	): Promise<void> {
		const { type } = server.deployment.service;
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const stored = await server.storage.lookup(id);
		const mutations = stored === undefined ? [] : deletion(this.#sim.runtime, stored);
		if (mutations.length > 0) {
			if (!dryRun) {
				this.#sim.observer.requests.deletions.add(stored?.id?.uid ?? "");
			}
			await server.store.commit(mutations, { dryRun });
		}
	}

	/** Removes the finalizer of users from a resource that is being deleted. */
	async release(server: SimulatedServer, name: string, namespace: string): Promise<void> {
		const { type } = server.deployment.service;
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const stored = await server.storage.lookup(id);
		if (
			stored === undefined ||
			!isMarkedForDeletion(stored) ||
			!finalizersOf(stored).includes(finalizer)
		) {
			return;
		}
		this.#sim.observer.requests.releases.add(stored.id?.uid ?? "");
		const next: Resource = {
			...stored,
			metadata: { ...stored.metadata },
			generation: newUlid(this.#sim.runtime),
		};
		removeFinalizer(next, finalizer);
		await server.store.commit(
			finalizersOf(next).length === 0
				? deletionWithTombstone(this.#sim.runtime, stored)
				: [{ op: "put", resource: next, expectedVersion: stored.version }],
		);
	}

	/** Marks the namespace. Its janitor then empties it. */
	async #deleteNamespace(server: SimulatedServer): Promise<void> {
		const { runtime, observer } = this.#sim;
		const stored = await server.storage.lookup(idOf(Namespace, namespaces[1]));
		if (stored === undefined || isMarkedForDeletion(stored)) {
			return;
		}
		observer.requests.namespaces.add(`${server.deployment.info.name}/${namespaces[1]}`);
		const marked: Resource = {
			...stored,
			generation: newUlid(runtime),
			metadata: {
				...stored.metadata,
				[deletionTimestampKey]: new Date(runtime.clock.now()).toISOString(),
			},
		};
		addFinalizer(marked, "janitor");
		const put: Mutation = { op: "put", resource: marked, expectedVersion: stored.version };
		await server.store.commit([put]);
	}
}

/** A random serving server of a deployment. */
export function serverOf(
	sim: SimulationContext,
	{ servers }: SimulatedDeployment,
): SimulatedServer | undefined {
	const open = servers.filter(({ isOpen }) => isOpen);
	return open[sim.below(open.length)];
}
