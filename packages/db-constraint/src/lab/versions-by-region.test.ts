import { create } from "@bufbuild/protobuf";
import { OwnerReferenceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { anyone } from "./anyone.fixture.ts";
import { Lab, type LabDeployment } from "./lab.fixture.ts";
import { alphaIn, betaIn, ThingV2, thingOf, WidgetV2, widgetIn } from "./two-versions.fixture.ts";

/**
 * Things in v1 in `r1` and in v2 in `r2`, and widgets that reference them in v1, in v2 or in both:
 *
 *     beta in r1, built against v1 ──▶ alpha in r1, v1
 *     beta in r2, built against v2 ──▶ alpha in r2, v2
 *     beta in r3, built against v1 and v2 ──▶ both
 */
async function regions() {
	const lab = new Lab(1);
	const v1 = await alphaIn(lab, "r1", [Thing]);
	const v2 = await alphaIn(lab, "r2", [ThingV2]);
	const ofV1 = await betaIn(lab, "r1", [Widget]);
	const ofV2 = await betaIn(lab, "r2", [WidgetV2]);
	const ofBoth = await betaIn(lab, "r3", [Widget, WidgetV2]);
	for (const alpha of [v1, v2]) {
		await lab.run(alpha.write(thingOf(alpha, "a")));
	}
	await lab.pass(1_000);
	const write = (at: LabDeployment, version: "v1" | "v2", name: string, uses: Uses) =>
		lab.run(at.write(widgetIn(version, name, uses), "", anyone));
	const remove = (alpha: LabDeployment) => lab.run(alpha.delete(alpha.id(Thing, "a")));
	const thing = (alpha: LabDeployment) => alpha.read(alpha.id(Thing, "a"));
	const widget = (beta: LabDeployment, name = "w") => beta.read(beta.id(Widget, name));
	return { lab, v1, v2, ofV1, ofV2, ofBoth, write, remove, thing, widget };
}

type Uses = Parameters<typeof widgetIn>[2];

describe("deployments of one service in different versions", () => {
	it("are referenced in the version that each of them serves, and in no other", async () => {
		const { v1, v2, ofV1, ofV2, ofBoth, write } = await regions();
		await write(ofV1, "v1", "w", { needs: v1 });
		await write(ofV2, "v2", "w", { needs: v2 });
		await write(ofBoth, "v1", "one", { needs: v1 });
		await write(ofBoth, "v2", "two", { needs: v2 });
		for (const beta of [ofV1, ofBoth]) {
			await expect(write(beta, "v1", "x", { needs: v2 })).rejects.toThrow(
				"alpha in r2 does not serve alpha.v1.Thing, only v2",
			);
		}
		for (const beta of [ofV2, ofBoth]) {
			await expect(write(beta, "v2", "x", { likes: v1 })).rejects.toThrow(
				"alpha in r1 does not serve alpha.v2.Thing, only v1",
			);
		}
	});

	it.for(["v1", "v2"] as const)("delete what is referenced in %s by its rules", async (version) => {
		const all = await regions();
		const { lab, ofBoth, write, remove, thing, widget } = all;
		const alpha = all[version];
		const own = version === "v1" ? all.ofV1 : all.ofV2;
		await write(own, version, "w", { needs: alpha });
		await write(ofBoth, version, "child", { belongsTo: alpha });
		await write(ofBoth, version, "friend", { likes: alpha });
		await expect(remove(alpha)).rejects.toThrow("beta.Widget default/default/w");
		await lab.run(own.delete(own.id(Widget, "w")));
		await remove(alpha);
		await lab.pass(10_000);
		expect(await thing(alpha)).toBeUndefined();
		expect(await widget(ofBoth, "child")).toBeUndefined();
		expect((await ofBoth.shadow(ofBoth.id(Widget, "friend")))?.outgoing ?? []).toEqual([]);
		expect(await widget(ofBoth, "friend")).toBeDefined();
	});

	it("own what deployments of any version have", async () => {
		const { lab, v2, ofV1, remove, thing, widget } = await regions();
		const owner = await thing(v2);
		const { name = "", uid = "", type, tenancy } = owner?.id ?? {};
		const reference = create(OwnerReferenceSchema, {
			...{ name, uid, region: "r2" },
			...(type && { type }),
			...(tenancy && { tenancy }),
		});
		await lab.run(ofV1.write(widgetIn("v1", "w", { owners: [reference] })));
		await lab.pass(5_000);
		await remove(v2);
		await lab.pass(300_000);
		expect(await thing(v2)).toBeUndefined();
		expect(await widget(ofV1)).toBeUndefined();
	});

	it("are updated one after the other, once those that reference them are", async () => {
		const { lab, v1, v2, ofV1, ofV2, write, remove, thing } = await regions();
		await write(ofV1, "v1", "w", { needs: v1 });
		for (const [deployment, types] of [
			[v1, [Thing, ThingV2]],
			[ofV1, [Widget, WidgetV2]],
		] as const) {
			deployment.crash();
			Object.assign(deployment.spec, { types });
			await lab.run(deployment.start());
			await lab.pass(5_000);
		}
		await write(ofV1, "v2", "new", { needs: v1 });
		await write(ofV2, "v2", "new", { needs: v1 });
		await write(ofV1, "v2", "other", { likes: v2 });
		await expect(remove(v1)).rejects.toThrow("it is referenced by");
		expect(await thing(v1)).toBeDefined();
	});
});
