import { create } from "@bufbuild/protobuf";
import { NamespaceSchema } from "@plinth/proto";
import { idOf, isMarkedForDeletion, Namespace, newUlid, resourceOf } from "@plinth/resource";
import { namespaces } from "./deployment.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";
import { serverOf, type User } from "./users.fixture.ts";

/** One round of the janitor: empties a marked namespace, or replaces it by a new one once it is empty. */
export async function cleanUp(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
	janitor: User,
): Promise<void> {
	const name = namespaces[1];
	const unit = `${deployment.info.name}/${name}`;
	const server = serverOf(sim, deployment);
	if (server === undefined || !sim.observer.records.markedNamespaces.has(unit)) {
		return;
	}
	const listed = await listing(server, name);
	for (const { id } of listed) {
		if (id !== undefined) {
			const now = serverOf(sim, deployment);
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
			(it) => replace(sim, it, name),
		]);
	}
}

async function listing({ storage, lifetime, deployment }: SimulatedServer, namespace: string) {
	const query = {
		type: deployment.service.type.type,
		tenancy: { partition: "default", namespace },
		namePrefix: "",
	};
	const crashed = () => new Error("the server crashed");
	return lifetime.observe(storage.list(query, { consistency: "strong" }), crashed).then(
		({ resources }) => resources,
		() => [],
	);
}

async function replace(
	sim: SimulationContext,
	{ storage, store }: SimulatedServer,
	name: string,
): Promise<void> {
	const stored = await storage.read(idOf(Namespace, name));
	if (stored.id === undefined || !isMarkedForDeletion(stored)) {
		return;
	}
	await store.commit([{ op: "delete", id: stored.id, expectedVersion: stored.version }]);
	const id = { ...idOf(Namespace, name), uid: newUlid(sim.runtime) };
	const next = resourceOf(Namespace, { id, data: create(NamespaceSchema) });
	next.generation = newUlid(sim.runtime);
	await store.commit([{ op: "put", resource: next, expectedVersion: "" }]);
}
