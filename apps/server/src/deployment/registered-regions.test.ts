import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Deployment, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import type { Resource } from "@plinth/proto";
import {
	DeletedDeploymentSchema,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { ResourceShadowSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { idOf, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { RegisteredRegions } from "./registered-regions.ts";

const [, , , DeletedDeployment] = metaTypes;

/** A uid that is greater than those with a smaller number. */
const uidOf = (number: number) => `01J0000000000000000000000${number}`;

/** A registry view in a storage, as references keep it. */
class StoredRegistry {
	readonly #backend = createMemoryBackend();
	readonly regions = new RegisteredRegions(this.#backend, { service: "music", region: "r1" });
	#records = 0;

	async #put(record: MessageInitShape<typeof ResourceShadowSchema>["record"], name: string) {
		const id = { ...idOf(ResourceShadow, name), uid: newUlid(systemRuntime) };
		const data = create(ResourceShadowSchema, { ...(record && { record }) });
		const resource = resourceOf(ResourceShadow, { id, data });
		await this.#backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	}

	async #entry(resource: Resource, endpoints: string[]): Promise<void> {
		this.#records += 1;
		const value = { source: "http://meta", resource, endpoints };
		await this.#put({ case: "registryEntry", value }, `registry-${this.#records}`);
	}

	/** Registers a deployment of `music`, unless another service is named. */
	async deployment(
		uid: string,
		init: MessageInitShape<typeof DeploymentSchema>,
		{ endpoints = [], generation = "" }: { endpoints?: string[]; generation?: string } = {},
	): Promise<void> {
		const data = create(DeploymentSchema, { service: "music", address: `http://${uid}`, ...init });
		const id = { ...idOf(Deployment, `d-${uid.toLowerCase()}`), uid };
		const resource = resourceOf(Deployment, { id, data });
		resource.generation = generation;
		await this.#entry(resource, endpoints);
	}

	/** Records that a deployment was deleted. */
	async deletion(uid: string): Promise<void> {
		const data = create(DeletedDeploymentSchema, { uid });
		const id = { ...idOf(DeletedDeployment, uid.toLowerCase()), uid: newUlid(systemRuntime) };
		await this.#entry(resourceOf(DeletedDeployment, { id, data }), []);
	}

	/** Gives the own deployment a uid. */
	async own(uid: string): Promise<void> {
		await this.#put({ case: "deployment", value: { uid } }, "deployment");
	}

	/** The other regions, as `region uid addresses`. */
	async shown(): Promise<readonly string[]> {
		const others = await this.regions.others();
		return others
			.map(({ region, uid, addresses }) => [region, uid.at(-1), ...addresses].join(" "))
			.sort();
	}
}

describe("the registered regions of a service", () => {
	it("are those of its other deployments, with the addresses of their running servers", async () => {
		const registry = new StoredRegistry();
		expect(await registry.shown()).toEqual([]);
		await registry.deployment(uidOf(1), { region: "r1" });
		await registry.deployment(uidOf(2), { region: "r2" });
		await registry.deployment(uidOf(3), { region: "r3" }, { endpoints: ["http://a", "http://b"] });
		await registry.deployment(uidOf(4), { region: "r4", service: "tours" });
		await registry.deployment(uidOf(5), { region: "r5", disabled: true });
		expect(await registry.shown()).toEqual([`r2 2 http://${uidOf(2)}`, "r3 3 http://a http://b"]);
	});

	it("have the deployment that has taken over, and not its predecessors", async () => {
		const registry = new StoredRegistry();
		await registry.deployment(uidOf(9), { region: "r2" });
		await registry.deployment(uidOf(8), { region: "r2", predecessorUid: uidOf(9) });
		await registry.deployment(uidOf(7), {
			...{ region: "r2", predecessorUid: uidOf(8) },
			otherPredecessorUids: [uidOf(9)],
		});
		// Two restores that do not know of each other: the one with the greater uid takes over.
		await registry.deployment(uidOf(3), { region: "r3" });
		await registry.deployment(uidOf(5), { region: "r3", predecessorUid: uidOf(3) });
		await registry.deployment(uidOf(4), { region: "r3", predecessorUid: uidOf(3) });
		expect(await registry.shown()).toEqual([`r2 7 http://${uidOf(7)}`, `r3 5 http://${uidOf(5)}`]);
	});

	it("lack deployments that were deleted, which is known by the record of the deletion alone", async () => {
		const registry = new StoredRegistry();
		await registry.deployment(uidOf(2), { region: "r2" });
		await registry.deployment(uidOf(3), { region: "r3" });
		await registry.deletion(uidOf(3));
		await registry.deletion(uidOf(4));
		expect(await registry.shown()).toEqual([`r2 2 http://${uidOf(2)}`]);
		expect(await registry.regions.isDeleted(uidOf(3))).toBe(true);
		expect(await registry.regions.isDeleted(uidOf(4))).toBe(true);
		expect(await registry.regions.isDeleted(uidOf(2))).toBe(false);
		expect(await registry.regions.isDeleted(uidOf(5))).toBe(false);
	});

	it("have the newest of what several meta deployments have reported", async () => {
		const registry = new StoredRegistry();
		const of = (address: string, generation: string) =>
			registry.deployment(uidOf(2), { region: "r2", address }, { generation });
		await of("http://old", "01A");
		await of("http://new", "01C");
		await of("http://older", "01B");
		expect(await registry.shown()).toEqual(["r2 2 http://new"]);
	});

	it("know the uid of the own deployment once it has one", async () => {
		const registry = new StoredRegistry();
		expect(await registry.regions.ownUid()).toBe(undefined);
		await registry.own(uidOf(1));
		expect(await registry.regions.ownUid()).toBe(uidOf(1));
	});
});
