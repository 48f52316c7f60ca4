import { create } from "@bufbuild/protobuf";
import { decodeShared, idOf, type ResourceType, referenceTo } from "@plinth/resource";
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
import {
	RegistryLab,
	type Started,
	type StartOptions,
	whenKnown,
} from "../registry/registry-lab.fixture.ts";
import { ResourceShadow, readRecord } from "../shadow/shadow-records.ts";
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

describe("the version of the active schema", () => {
	const never = new AbortController().signal;

	/** A meta deployment, and servers of `alpha` over one storage: of the release before, in v1, and of the next one. */
	async function twoReleases(meta: StartOptions = {}) {
		const lab = new RegistryLab();
		const registrar = await lab.start("meta", "r1", meta);
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const start = (address: string, types: readonly ResourceType[]) =>
			lab.begin("alpha", "r1", { backend, address, types });
		const before = (address: string) => start(address, [Thing]);
		const next = (address: string) => start(address, [Thing, ThingV2]);
		const earlier = await before("alpha-1");
		await earlier.references.until("announced", never);
		const later = await next("alpha-2");
		await later.references.until("announced", never);
		await whenRegistered(registrar, "v2");
		await whenSuperseded(earlier, true);
		return { registrar, before, next, earlier, later };
	}

	async function whenRegistered({ registry }: Started, version: string) {
		await vi.waitFor(() => expect(registry.find("alpha", "r1")?.version).toBe(version), {
			timeout,
		});
	}

	async function whenSuperseded({ references }: Started, isSuperseded: boolean) {
		await vi.waitFor(() => expect(references.state.superseded !== undefined).toBe(isSuperseded), {
			timeout,
		});
	}

	async function registeredAt({ client }: Started) {
		const { resource } = await client.read({ id: idOf(Deployment, "alpha-r1") });
		return resource && decodeShared(Deployment, resource).data.currentVersion;
	}

	it("stays registered when a server with an earlier one reaches the meta deployment later", async () => {
		const lab = new RegistryLab();
		const shared = createMemoryBackend({ runtime: systemRuntime });
		const metas = ["meta-a", "meta-b"];
		const start = (address: string) => lab.start("meta", "r1", { address, metas, backend: shared });
		const unreachable = await start("meta-a");
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const old = { backend, address: "alpha-1", metas: ["meta-a"], types: [Thing] };
		const first = await lab.start("alpha", "r1", old);
		await first.references.until("announced", never);
		await whenKnown(first.registry, () => first.registry.isComplete);
		await vi.waitFor(async () => expect(await readRecord(backend, "registry")).toBeDefined(), {
			timeout,
		});
		await first.stop();
		await unreachable.stop();
		const earlier = await lab.start("alpha", "r1", old);
		const problem = () => earlier.references.state.problems.get("announce the version");
		await vi.waitFor(() => expect(problem()).toBeDefined(), { timeout });

		const meta = await start("meta-b");
		const later = await lab.start("alpha", "r1", {
			...{ backend, address: "alpha-2", metas: ["meta-b"], types: [Thing, ThingV2] },
		});
		await later.references.until("announced", never);
		await whenSuperseded(earlier, true);
		await start("meta-a");
		const isRefused = () => problem()?.startsWith("another server has activated") ?? false;
		const isAnnounced = () => earlier.references.state.reached.includes("announced");
		await vi.waitFor(() => expect(isRefused() || isAnnounced()).toBe(true), {
			timeout,
		});
		expect(await registeredAt(meta)).toBe("v2");
	});

	it("is registered again when a server that died has activated it", async () => {
		const { registrar, before, earlier } = await twoReleases();
		await (await before("alpha-3")).stop();
		await whenSuperseded(earlier, false);
		await whenRegistered(registrar, "v1");
	});

	it("is not replaced by another one whose announcement is on its way when it is activated again", async () => {
		const memory = createMemoryBackend({ runtime: systemRuntime });
		const sent = Promise.withResolvers<void>();
		const arrives = Promise.withResolvers<void>();
		const ended = Promise.withResolvers<string>();
		let isHeld = false;
		const backend = decorateBackend(memory, {
			async commit(mutations, options) {
				const isV1 = mutations.some(
					(each) =>
						each.op === "put" &&
						each.resource.id?.name === "alpha-r1" &&
						each.resource.id.type?.kind === "Deployment" &&
						decodeShared(Deployment, each.resource).data.currentVersion === "v1",
				);
				if (!isV1 || !isHeld) {
					return memory.commit(mutations, options);
				}
				isHeld = false;
				sent.resolve();
				await arrives.promise;
				const committed = memory.commit(mutations, options);
				committed.then(
					() => ended.resolve("committed"),
					() => ended.resolve("refused"),
				);
				return committed;
			},
		});
		const { registrar, before, next, later } = await twoReleases({ backend });
		isHeld = true;
		await later.stop();
		await (await before("alpha-3")).stop();
		await sent.promise;
		// It has the address that is registered: to move that would change the Deployment too.
		const again = await next("alpha-2");
		await again.references.until("announced", never);
		arrives.resolve();
		expect(await ended.promise).toBe("refused");
		expect(await registeredAt(registrar)).toBe("v2");
	});
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
