import { decodeShared } from "@plinth/resource";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { ThingV2 } from "../lab/two-versions.fixture.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { MetaSources } from "./meta-sources.ts";
import { Deployment } from "./meta-types.ts";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";
import { RegistryView } from "./registry-view.ts";

const addresses = ["meta-a", "meta-b"];

/** A meta deployment of two servers, and `alpha`, which knows both. */
async function two() {
	const lab = new RegistryLab();
	const backend = createMemoryBackend({ runtime: systemRuntime });
	const start = (address: string) =>
		lab.start("meta", "r1", { address, metas: addresses, backend });
	const a = await start("meta-a");
	const b = await start("meta-b");
	const alpha = await lab.start("alpha", "r1", {
		...{ metas: addresses, types: [Thing, ThingV2], version: "v1" },
	});
	return { lab, a, b, alpha, start };
}

const patiently = { timeout: 60_000, interval: 50 };

/** The address of the meta deployment, as each of its servers reported it to those of a deployment, which have stored it. */
async function storedAddresses(backend: StorageBackend): Promise<Readonly<Record<string, string>>> {
	const query = { tenancy: { partition: "", namespace: "" }, namePrefix: "registry" };
	const { resources } = await backend.list({ type: ResourceShadow.type, ...query });
	return Object.fromEntries(
		resources.flatMap((each) => {
			const { record } = recordOf(each);
			if (record.case !== "registryEntry" || record.value.resource?.id?.name !== "meta-r1") {
				return [];
			}
			const { source, resource } = record.value;
			return [[source, decodeShared(Deployment, resource).data.address]];
		}),
	);
}

it("a registry of which no meta deployment is known is not complete", () => {
	const sources = new MetaSources({
		...{ view: new RegistryView(), runtime: systemRuntime, logger: silentLogger },
		onChange: () => {},
	});
	expect(sources.isComplete).toBe(false);
	expect(sources.upToDateMs()).toBeUndefined();
});

describe("a meta deployment of two servers", () => {
	it("is one deployment", async () => {
		const { a, b, alpha } = await two();
		expect(b.registry.self.uid).toBe(a.registry.self.uid);
		await whenKnown(alpha.registry, () => alpha.registry.isComplete);
		expect(alpha.registry.deployments().map(({ name }) => name)).toEqual(["alpha-r1", "meta-r1"]);
	});

	it("registers, tells of changes and knows what was deleted while one of them is down", async () => {
		const { lab, a, b, alpha } = await two();
		const { registry } = alpha;
		await whenKnown(registry, () => registry.isComplete);
		await a.stop();
		const beta = await lab.start("beta", "r1", { metas: addresses });
		await whenKnown(registry, () => registry.find("beta", "r1") !== undefined);
		const { uid } = beta.registry.self;
		expect(await registry.isDeleted(uid)).toBe(false);
		await lab.change(b, "alpha-r1", { wantedVersion: "v2" });
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1")?.version === "v2");
		await lab.delete(b, "beta-r1");
		await whenKnown(registry, () => registry.byUid(uid) === undefined);
		expect(await registry.isDeleted(uid)).toBe(true);
		expect(registry.isComplete).toBe(true);
		await vi.waitFor(() => expect(registry.outdatedSince).toBeUndefined(), { timeout: 300_000 });
	});

	it("lets a deployment that was restored once delete, though the registered one of them is down when it starts again", async () => {
		const lab = new RegistryLab();
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const meta = (address: string) =>
			lab.start("meta", "r1", { address, metas: addresses, backend });
		const [first] = [await meta("meta-a"), await meta("meta-b")];
		const storage = createMemoryBackend({ runtime: systemRuntime });
		const start = (storageIncarnation: string) =>
			lab.start("alpha", "r1", { metas: addresses, backend: storage, storageIncarnation });
		await (await start("1")).stop();
		const restored = await start("2");
		await whenKnown(restored.registry, () => restored.registry.isComplete);
		const stored = () => storedAddresses(storage);
		await expect.poll(stored, patiently).toHaveProperty(["http://meta-a"], "http://meta-a");
		await first.stop();
		// What is stored then must tell that the server that is gone is one of the same deployment.
		await expect.poll(stored, patiently).toHaveProperty(["http://meta-b"], "http://meta-b");
		await restored.stop();
		const again = await start("2");
		await whenKnown(again.registry, () => again.registry.isComplete);
	});

	it("tells nothing old when the servers are replaced one after the other", async () => {
		const { lab, a, b, alpha, start } = await two();
		const { registry } = alpha;
		await whenKnown(registry, () => registry.isComplete);
		await a.stop();
		await lab.start("beta", "r1", { metas: addresses });
		await whenKnown(registry, () => registry.find("beta", "r1") !== undefined);
		const again = await start("meta-a");
		await b.stop();
		const { uid } = registry.find("beta", "r1") ?? { uid: "" };
		await lab.delete(again, "beta-r1");
		await whenKnown(registry, () => registry.byUid(uid) === undefined);
		expect(await registry.isDeleted(uid)).toBe(true);
	});
});
