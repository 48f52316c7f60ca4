import { create } from "@bufbuild/protobuf";
import { NamespaceSchema } from "@plinth/proto";
import { idOf, isMarkedForDeletion, Namespace, newUlid, resourceOf } from "@plinth/resource";
import { type Deployment, namespaces } from "./deployment.ts";
import type { Server } from "./server.ts";
import { serverOf, type User } from "./users.ts";
import type { World } from "./world.ts";

/**
 * Empties the namespace of a deployment that is being deleted, removes it, and makes a new one: one
 * round.
 */
export async function cleanUp(world: World, deployment: Deployment, janitor: User): Promise<void> {
	const name = namespaces[1];
	const unit = `${deployment.info.name}/${name}`;
	const server = serverOf(world, deployment);
	if (server === undefined || !world.observer.records.markedNamespaces.has(unit)) {
		return;
	}
	const listed = await listing(server, name);
	for (const { id } of listed) {
		if (id !== undefined) {
			const now = serverOf(world, deployment);
			if (now === undefined) {
				return;
			}
			await janitor.attempt(now, [
				`clean up ${id.name}`,
				(it) => janitor.delete(it, id.name, name),
			]);
		}
	}
	if (listed.length === 0) {
		await janitor.attempt(server, [
			`replace the namespace ${name}`,
			(it) => replace(world, it, name),
		]);
	}
}

async function listing({ storage, life, deployment }: Server, namespace: string) {
	const query = {
		type: deployment.service.type.type,
		tenancy: { partition: "default", namespace },
		namePrefix: "",
	};
	const crashed = () => new Error("the server crashed");
	return life.seenFrom(storage.list(query, { consistency: "strong" }), crashed).then(
		({ resources }) => resources,
		() => [],
	);
}

async function replace(world: World, { storage, store }: Server, name: string): Promise<void> {
	const stored = await storage.read(idOf(Namespace, name));
	if (stored.id === undefined || !isMarkedForDeletion(stored)) {
		return;
	}
	await store.commit([{ op: "delete", id: stored.id, expectedVersion: stored.version }]);
	const id = { ...idOf(Namespace, name), uid: newUlid(world.runtime) };
	const next = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
	next.generation = newUlid(world.runtime);
	await store.commit([{ op: "put", resource: next, expectedVersion: "" }]);
}
