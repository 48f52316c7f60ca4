import { create } from "@bufbuild/protobuf";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { ThingV2, WidgetV2 } from "../lab/two-versions.fixture.ts";
import { RegistryLab } from "../registry/registry-lab.fixture.ts";
import type { ReferenceManager } from "./reference-manager.ts";

function shows(manager: ReferenceManager, names: readonly string[]): Promise<void> {
	return vi.waitFor(
		() => {
			expect(manager.relatedDeployments.map(({ name }) => name).sort()).toEqual(names);
			expect(manager.subscribed).toHaveLength(names.length - 1);
		},
		{ timeout: 300_000, interval: 20 },
	);
}

/** `beta` imports `alpha`; both run in two regions, with the meta service in one. */
async function seed() {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1");
	await lab.start("alpha", "r2");
	const beta = await lab.start("beta", "r1");
	await lab.start("beta", "r2");
	return { lab, meta, alpha, beta };
}

const four = ["alpha-r1", "alpha-r2", "beta-r1", "beta-r2"];

describe("the reference manager of a service that imports another, in two regions", () => {
	it("follows four deployments, six with another region, and drops disabled and deleted ones", async () => {
		const { lab, meta, beta } = await seed();
		const { manager } = beta;
		await shows(manager, four);
		await lab.start("alpha", "r3");
		await lab.start("beta", "r3");
		const six = ["alpha-r1", "alpha-r2", "alpha-r3", "beta-r1", "beta-r2", "beta-r3"];
		await shows(manager, six);
		await lab.change(meta, "beta-r3", { disabled: true });
		await shows(manager, six.slice(0, -1));
		await lab.delete(meta, "alpha-r3");
		await shows(manager, four);
	});

	it("keeps a disabled deployment while it is referenced", async () => {
		const { lab, meta, alpha, beta } = await seed();
		const { manager } = beta;
		await shows(manager, four);
		await alpha.client.write({ resource: resourceOf(Thing, { id: idOf(Thing, "a") }) });
		const likes = [referenceTo({ type: Thing.type, name: "a" })];
		const id = idOf(Widget, "w");
		await beta.client.write({
			resource: resourceOf(Widget, { id, data: create(WidgetSchema, { likes }) }),
		});
		await lab.change(meta, "alpha-r1", { disabled: true });
		await lab.change(meta, "alpha-r2", { disabled: true });
		await shows(manager, ["alpha-r1", "beta-r1", "beta-r2"]);
		await lab.change(meta, "alpha-r1", { disabled: false });
		await beta.client.delete({ id });
		await lab.change(meta, "alpha-r1", { disabled: true });
		await shows(manager, ["beta-r1", "beta-r2"]);
	});

	it("stops the inner manager when the version switches, and starts one for the new version", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		await lab.start("alpha", "r1", { types: [Thing, ThingV2], version: "v1" });
		const { manager } = await lab.start("beta", "r1", { types: [Widget, WidgetV2], version: "v1" });
		await vi.waitFor(() => expect(manager.version).toBe("v1"), { timeout: 300_000 });
		expect(manager.reports?.state().controllers.map(({ name }) => name)).toEqual([
			"db-constraint-v1",
		]);
		await lab.change(meta, "beta-r1", { wantedVersion: "v2" });
		await vi.waitFor(() => expect(manager.version).toBe("v2"), { timeout: 300_000 });
		expect(manager.reports?.state().controllers.map(({ name }) => name)).toEqual([
			"db-constraint-v2",
		]);
	});

	it("cascades from another service through its controller", async () => {
		const { alpha, beta } = await seed();
		await shows(beta.manager, four);
		const a = idOf(Thing, "a");
		await alpha.client.write({
			resource: resourceOf(Thing, { id: a, data: create(ThingSchema, { note: "a" }) }),
		});
		const belongsTo = referenceTo({ type: Thing.type, name: "a" });
		const w = idOf(Widget, "w");
		await beta.client.write({
			resource: resourceOf(Widget, { id: w, data: create(WidgetSchema, { belongsTo }) }),
		});
		await alpha.client.delete({ id: a });
		await vi.waitFor(
			async () => {
				await expect(beta.client.read({ id: w })).rejects.toThrow("not found");
				await expect(alpha.client.read({ id: a })).rejects.toThrow("not found");
			},
			{ timeout: 300_000, interval: 50 },
		);
	});

	it("serves other deployments while one does not respond", async () => {
		const { lab, alpha, beta } = await seed();
		const slow = await lab.start("alpha", "r3");
		const silence = Promise.withResolvers<void>();
		onTestFinished(() => silence.resolve());
		lab.confirmations.set("alpha-r3", silence.promise);
		await vi.waitFor(() => expect(beta.manager.subscribed).toContain(alpha.registry.self.uid), {
			timeout: 300_000,
		});
		await slow.client.write({ resource: resourceOf(Thing, { id: idOf(Thing, "s") }) });
		const likes = [{ ...referenceTo({ type: Thing.type, name: "s" }), region: "r3" }];
		// More than the total number of concurrent passes.
		for (let i = 0; i < 1_100; i++) {
			const data = create(WidgetSchema, { likes });
			await beta.client.write({
				resource: resourceOf(Widget, { id: idOf(Widget, `w${i}`), data }),
			});
		}
		const a = idOf(Thing, "a");
		const w = idOf(Widget, "w");
		await alpha.client.write({ resource: resourceOf(Thing, { id: a }) });
		const belongsTo = referenceTo({ type: Thing.type, name: "a" });
		await beta.client.write({
			resource: resourceOf(Widget, { id: w, data: create(WidgetSchema, { belongsTo }) }),
		});
		await alpha.client.delete({ id: a });
		await vi.waitFor(
			async () => {
				await expect(beta.client.read({ id: w })).rejects.toThrow("not found");
				await expect(alpha.client.read({ id: a })).rejects.toThrow("not found");
			},
			{ timeout: 300_000, interval: 50 },
		);
		silence.resolve();
		await vi.waitFor(
			() => {
				const left = [...beta.constraints.context.index.all()].flatMap(
					({ shadow }) => shadow.tasks,
				);
				expect(left).toEqual([]);
			},
			{ timeout: 300_000, interval: 50 },
		);
	});
});
