import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it } from "vitest";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";

it("a deployment that registers with another meta deployment is found at its new address", async () => {
	const lab = new RegistryLab();
	await lab.start("meta", "r1", { metas: [] });
	const second = await lab.start("meta", "r2", { metas: [] });
	// Its versions are higher than those of the first one.
	for (let at = 0; at < 40; at++) {
		await lab.change(second, "meta-r2", { wantedVersion: at % 2 === 0 ? "v8" : "v9" });
	}
	const backend = createMemoryBackend({ runtime: systemRuntime });
	const before = await lab.start("alpha", "r1", { backend, metas: ["meta-r2"] });
	await before.references.until("announced", new AbortController().signal);
	await before.stop();
	await lab.start("alpha", "r1", { backend, metas: ["meta-r1"], address: "alpha-new" });
	const { registry } = await lab.start("beta", "r1", { metas: ["meta-r1", "meta-r2"] });
	await whenKnown(registry, () => registry.isComplete);
	expect(registry.find("alpha", "r1")).toMatchObject({ address: "http://alpha-new" });
});
