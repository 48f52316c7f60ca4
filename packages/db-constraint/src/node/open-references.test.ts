import { create } from "@bufbuild/protobuf";
import { decodeShared, referenceTo } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import {
	createMemoryBackend,
	decorateBackend,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { ReferenceManager } from "../controller/reference-manager.ts";
import { make } from "../lab/lab.fixture.ts";
import { oneDeployment } from "../lab/things.fixture.ts";
import { ThingV2 } from "../lab/two-versions.fixture.ts";
import { Deployment } from "../registry/meta-types.ts";
import { RegistryLab, whenKnown } from "../registry/registry-lab.fixture.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { deploymentRecord } from "../succession/deployment-record.ts";

const timeout = 60_000;

/** A server of `beta` as a successor, which can't establish its references again: the deployment of their target is down. */
async function establishing(decorate = (backend: StorageBackend) => backend) {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1");
	const before = await lab.start("beta", "r1", { storageIncarnation: "one" });
	const needs = referenceTo({ type: Thing.type, name: "a" });
	await alpha.client.write({ resource: make(Thing, "a", create(ThingSchema)) });
	await before.client.write({ resource: make(Widget, "w", create(WidgetSchema, { needs })) });
	await before.stop();
	await alpha.stop();
	await lab.delete(meta, "beta-r1");
	const backend = decorate(before.backend);
	const beta = await lab.begin("beta", "r1", { backend, storageIncarnation: "one" });
	await vi.waitFor(() => expect(beta.references.state.problems).toHaveProperty("size", 1), {
		timeout,
	});
	expect([...beta.references.state.problems.keys()]).toEqual(["establish references again"]);
	return { lab, meta, beta };
}

describe("a server that can't establish its references again", () => {
	it("must stop once another storage has taken over", async () => {
		const { lab, beta } = await establishing();
		const copy = createMemoryBackend({ runtime: systemRuntime });
		const { resources } = await beta.backend.list({
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: deploymentRecord,
		});
		for (const resource of resources) {
			await copy.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
		const restored = { backend: copy, storageIncarnation: "two", address: "elsewhere" };
		await lab.begin("beta", "r1", restored);
		await whenKnown(beta.registry, () => beta.registry.state.kind === "succeeded");
		await vi.waitFor(
			() =>
				expect(beta.failures).toContainEqual(
					expect.objectContaining({ message: expect.stringContaining("was taken over by") }),
				),
			{ timeout },
		);
	});

	it("must stop once its Deployment is deleted, also if the uid can't be given up then", async () => {
		let isDown = false;
		const { lab, meta, beta } = await establishing((backend) =>
			decorateBackend(backend, {
				async commit(mutations, options) {
					if (
						isDown &&
						mutations.some(
							(each) => each.op === "put" && each.resource.id?.name === deploymentRecord,
						)
					) {
						throw new StorageUnavailable("the storage can't be reached");
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		isDown = true;
		await lab.delete(meta, "beta-r1");
		await vi.waitFor(
			() =>
				expect(beta.failures).toContainEqual(
					expect.objectContaining({ message: expect.stringContaining("was deleted") }),
				),
			{ timeout },
		);
	});
});

it("announces a version that operators request while it switches to another one", async () => {
	const { promise: isKnown, resolve: know } = Promise.withResolvers<void>();
	const { promise: isStored, resolve: store } = Promise.withResolvers<void>();
	const memory = createMemoryBackend({ runtime: systemRuntime });
	const backend = decorateBackend(memory, {
		async commit(mutations, options) {
			const result = await memory.commit(mutations, options);
			const versions = mutations.flatMap((each) => {
				const isDeployment = each.op === "put" && each.resource.id?.type?.kind === "Deployment";
				return isDeployment ? [decodeShared(Deployment, each.resource).data.currentVersion] : [];
			});
			// The response to the server that announces v1 comes once it knows what is requested next.
			if (versions.includes("v1")) {
				store();
				await isKnown;
			}
			return result;
		},
	});
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1", { backend });
	const alpha = await lab.start("alpha", "r1", { types: [Thing, ThingV2] });
	const { references, registry } = alpha;
	await references.until("announced", new AbortController().signal);
	expect(registry.self.version).toBe("v2");
	await lab.change(meta, "alpha-r1", { wantedVersion: "v1" });
	await isStored;
	const changed = lab.change(meta, "alpha-r1", { wantedVersion: "v2" });
	await whenKnown(registry, () => registry.wantedVersion === "v2");
	expect(registry.self.version).toBe("v2");
	know();
	await changed;
	await whenKnown(meta.registry, () => meta.registry.find("alpha", "r1")?.version === "v1");
	await whenKnown(meta.registry, () => meta.registry.find("alpha", "r1")?.version === "v2");
});

afterEach(() => {
	vi.restoreAllMocks();
});

describe("opened references", () => {
	it("report that their manager has failed", async () => {
		const failure = new Error("the manager is broken");
		vi.spyOn(ReferenceManager.prototype, "run").mockRejectedValue(failure);
		const { lab, alpha } = await oneDeployment();
		await lab.pass(1_000);
		expect(alpha.failures).toEqual([failure]);
	});
});
