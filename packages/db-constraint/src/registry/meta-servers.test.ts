import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { ThingV2 } from "../lab/two-versions.fixture.ts";
import { MetaSources } from "./meta-sources.ts";
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
