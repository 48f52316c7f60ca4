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
import { deletion } from "../removals.ts";
import { lookup } from "../shadow-records.ts";
import { alpha, type Deployment, namespaces, regions } from "./deployment.ts";
import type { Tracked } from "./records.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

const names = ["a", "b"] as const;
const finalizer = "user/holds";

/** What users crowd around, in the first deployment: that of things in the first region. */
const crowded = { name: names[0], namespace: namespaces[0], region: regions[0] };

/** A user, who does one thing after the other wherever a server answers. */
export class User {
	readonly #world: World;
	readonly #name: string;
	#written = 0;

	constructor(world: World, name: string) {
		this.#world = world;
		this.#name = name;
	}

	/** Does so many things, and ends. */
	async work(times: number): Promise<void> {
		const world = this.#world;
		for (let done = 0; done < times; done++) {
			await world.pass(world.random.next() * world.pick(world.habits.pausesMs));
			const deployment = this.#somewhere();
			const server = deployment && (await this.#await(deployment));
			if (deployment === undefined || server === undefined) {
				continue;
			}
			await this.attempt(server, this.#something(deployment, done < times / 4));
		}
	}

	/** A server that serves, unless there is none for a minute. */
	async #await(deployment: Deployment): Promise<Server | undefined> {
		const world = this.#world;
		for (let tries = 0; tries < 60; tries++) {
			const server = serverOf(world, deployment);
			if (server !== undefined) {
				return server;
			}
			await world.pass(1_000);
		}
		return undefined;
	}

	/** Does something by a server, unless that crashes meanwhile. What fails is given up. */
	async attempt(
		server: Server,
		[what, run]: readonly [string, (server: Server) => Promise<unknown>],
	): Promise<boolean> {
		const { story } = this.#world;
		story.tell(this.#name, () => `at ${server.name}: ${what}`);
		try {
			await server.life.seenFrom(run(server), () => new Error("the server crashed"));
			story.tell(this.#name, () => `at ${server.name}: ${what}: done`);
			return true;
		} catch (failure) {
			this.#world.observer.failed(this.#name, failure);
			return false;
		}
	}

	#somewhere(): Deployment | undefined {
		const world = this.#world;
		const { deployments, habits } = world;
		if (this.#seesChance() && world.happens(0.7)) {
			return deployments[0];
		}
		const draw = world.random.next();
		if (draw < habits.home + habits.guest) {
			return draw < habits.home ? deployments[0] : deployments.at(-1);
		}
		return deployments[world.below(deployments.length)];
	}

	#something(
		deployment: Deployment,
		isEarly: boolean,
	): readonly [string, (server: Server) => Promise<unknown>] {
		const world = this.#world;
		const isHome = world.habits.isCrowded && deployment === world.deployments[0];
		const draw = isEarly ? 0 : isHome ? this.#drawAtHome() : world.random.next();
		const { name, namespace } = isHome
			? crowded
			: this.#place(({ deployment: keeper }) => keeper === deployment, draw < 0.5 ? 0.4 : 0.9);
		if (draw >= 1 - world.habits.evicting) {
			return [
				`delete the namespace "other" of ${deployment.info.name}`,
				(server) => this.#deleteNamespace(server),
			];
		}
		if (draw < 0.5) {
			return [`write ${namespace}/${name}`, (server) => this.#write(server, name, namespace)];
		}
		if (draw < 0.9) {
			const dryRun = world.happens(0.05);
			return [
				`delete ${namespace}/${name}${dryRun ? " (dry run)" : ""}`,
				(server) => this.delete(server, name, namespace, dryRun),
			];
		}
		return [`release ${namespace}/${name}`, (server) => this.release(server, name, namespace)];
	}

	/** Whether somebody is about to reference what is crowded around: a good time to delete that. */
	#seesChance(): boolean {
		const { habits, held } = this.#world;
		return habits.isCrowded && held > 0;
	}

	/** What is crowded around is made as soon as it is gone, and soon deleted again. */
	#drawAtHome(): number {
		const world = this.#world;
		const [home] = world.deployments;
		const isThere = [...world.observer.records.resources.values()].some(
			({ deployment, resource }) =>
				deployment === home &&
				resource.id?.name === crowded.name &&
				resource.id.tenancy?.namespace === crowded.namespace,
		);
		if (isThere && this.#seesChance()) {
			return 0.6;
		}
		return isThere ? 0.35 + world.random.next() * 0.6 : world.random.next() * 0.55;
	}

	/** Where something is, as it is known to users; by the other chance, anywhere. */
	#place(
		fits: (tracked: Tracked) => boolean,
		known: number,
	): { readonly name: string; readonly namespace: string; readonly region: string } {
		const world = this.#world;
		if (world.happens(known)) {
			const all = [...world.observer.records.resources.values()].filter(fits);
			const one = all[world.below(all.length)];
			if (one?.resource.id !== undefined) {
				const { name, tenancy } = one.resource.id;
				const { region } = one.deployment.info;
				return { name, namespace: tenancy?.namespace ?? "", region };
			}
		}
		const namespace = world.happens(world.habits.elsewhere) ? namespaces[1] : namespaces[0];
		return { name: world.pick(names), namespace, region: world.pick(regions) };
	}

	async #write(server: Server, name: string, namespace: string): Promise<void> {
		const world = this.#world;
		const { type } = server.schema;
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const { storage } = server;
		const [stored, unit] = await Promise.all([
			lookup(storage, id),
			lookup(storage, idOf(Namespace, namespace)),
		]);
		if (
			unit?.id === undefined ||
			isMarkedForDeletion(unit) ||
			(stored && isMarkedForDeletion(stored))
		) {
			return;
		}
		const ownerReferences = world.happens(0.75)
			? (stored?.ownerReferences ?? [])
			: this.#owners(id.name);
		const fresh = resourceOf(type, { id, data: this.#data(server) });
		const resource: Resource = {
			...fresh,
			...stored,
			id: { ...id, uid: stored?.id?.uid ?? newUlid(world.runtime) },
			...(fresh.data && { data: fresh.data }),
			generation: newUlid(world.runtime),
			metadata: { ...stored?.metadata },
			ownerReferences: [...ownerReferences],
		};
		if (stored === undefined && world.happens(world.habits.holding)) {
			addFinalizer(resource, finalizer);
		}
		await server.store.commit([
			{ op: "put", resource, expectedVersion: stored?.version ?? "" },
			{ op: "assert", id: unit.id, expectedVersion: unit.version },
		]);
	}

	#data(server: Server) {
		const world = this.#world;
		this.#written += 1;
		const note = `${this.#name} ${this.#written}`;
		const isCrowd = world.habits.isCrowded && server.deployment === world.deployments[0];
		const maybe = (chance: number, type = alpha.type) =>
			world.happens(isCrowd ? chance / 5 : chance) ? this.#reference(type) : undefined;
		const needs = maybe(world.habits.blocking);
		const belongsTo = maybe(world.habits.cascading);
		const likes = [maybe(0.25), maybe(0.15)].flatMap((it) => it ?? []);
		const common = { note, likes, ...(needs && { needs }), ...(belongsTo && { belongsTo }) };
		const { type } = server.deployment.service;
		const next = type !== alpha.type && world.happens(0.3) ? this.#reference(type) : undefined;
		const later = world.switches && world.happens(0.3) ? this.#reference(alpha.type) : undefined;
		const init = { ...common, ...(next && { next }), ...(later && { later }) };
		return create<DescMessage>(server.schema.type.schema, init);
	}

	#reference(type: Deployment["service"]["type"]): Reference {
		const world = this.#world;
		const { name, namespace, region } =
			type === alpha.type && world.happens(world.habits.following)
				? crowded
				: this.#place(({ deployment }) => deployment.service.type === type, 0.9);
		return {
			...referenceTo({ type: type.type, name }),
			tenancy: tenancyOf({ partition: "default", namespace }),
			region,
		};
	}

	/** Users know the uids of what they see, or saw once. */
	#owners(own: string): readonly OwnerReference[] {
		const world = this.#world;
		const all = [...world.observer.records.resources.values()];
		const owner = all[world.below(all.length)];
		if (owner?.resource.id === undefined || world.happens(0.2)) {
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
				unsetOnDelete: world.happens(0.3),
				requiresOwnerReference: world.happens(0.15),
				...(id.type && { type: id.type }),
				...(id.tenancy && { tenancy: id.tenancy }),
			}),
		];
	}

	/** Deletes a resource, as the resource service does. */
	async delete(server: Server, name: string, namespace: string, dryRun = false): Promise<void> {
		const { type } = server.deployment.service;
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const stored = await lookup(server.storage, id);
		const mutations = stored === undefined ? [] : deletion(this.#world.runtime, stored);
		if (mutations.length > 0) {
			if (!dryRun) {
				this.#world.observer.requests.deletions.add(stored?.id?.uid ?? "");
			}
			await server.store.commit(mutations, { dryRun });
		}
	}

	/** Takes the finalizer of users off a resource that is being deleted. */
	async release(server: Server, name: string, namespace: string): Promise<void> {
		const { type } = server.deployment.service;
		const id = { ...idOf(type, name), tenancy: tenancyOf({ partition: "default", namespace }) };
		const stored = await lookup(server.storage, id);
		if (
			stored === undefined ||
			!isMarkedForDeletion(stored) ||
			!finalizersOf(stored).includes(finalizer)
		) {
			return;
		}
		this.#world.observer.requests.releases.add(stored.id?.uid ?? "");
		const next: Resource = {
			...stored,
			metadata: { ...stored.metadata },
			generation: newUlid(this.#world.runtime),
		};
		removeFinalizer(next, finalizer);
		await server.store.commit(
			finalizersOf(next).length === 0
				? deletionWithTombstone(this.#world.runtime, stored)
				: [{ op: "put", resource: next, expectedVersion: stored.version }],
		);
	}

	/** Marks the namespace, so that its janitor empties it. */
	async #deleteNamespace(server: Server): Promise<void> {
		const { runtime, observer } = this.#world;
		const stored = await lookup(server.storage, idOf(Namespace, namespaces[1]));
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

/** Any server of a deployment that serves. */
export function serverOf(world: World, { servers }: Deployment): Server | undefined {
	const open = servers.filter(({ isOpen }) => isOpen);
	return open[world.below(open.length)];
}
