import { create } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { recordId } from "../shadow/shadow-records.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";
import { hooked } from "./things.fixture.ts";

type Init = Parameters<typeof create<typeof ThingSchema>>[1];
type WidgetInit = Parameters<typeof create<typeof WidgetSchema>>[1];

const thing = (name: string, init: Init = {}) => make(Thing, name, create(ThingSchema, init));
const widget = (name: string, init: WidgetInit = {}) =>
	make(Widget, name, create(WidgetSchema, init));
const shadowId = (deployment: LabDeployment, name: string) =>
	recordId(shadowName(keyOf(deployment.id(Thing, name), deployment.info.region)));
const to = (name: string, region = "") => ({ ...referenceTo({ type: Thing.type, name }), region });

async function twoServices() {
	const lab = new Lab(1);
	const alpha1 = await lab.add({ name: "alpha-1", service: "alpha", region: "r1", types: [Thing] });
	const alpha2 = await lab.add({ name: "alpha-2", service: "alpha", region: "r2", types: [Thing] });
	const beta1 = await lab.add({
		name: "beta-1",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	return { lab, alpha1, alpha2, beta1 };
}

describe("references between deployments", () => {
	it("puts a tentative source on the target, and confirms it after the commit", async () => {
		const { lab, alpha1, beta1 } = await twoServices();
		const a = alpha1.id(Thing, "a");
		await lab.run(alpha1.write(thing("a")));
		await lab.run(beta1.write(widget("w", { needs: to("a") })));
		expect((await alpha1.shadow(a))?.sources).toMatchObject([
			{ deployment: { uid: beta1.info.uid }, rules: [1] },
		]);
		await lab.pass(1_000);
		expect((await alpha1.shadow(a))?.sources).toMatchObject([{ tentative: false }]);
		expect((await beta1.shadow(beta1.id(Widget, "w")))?.tasks).toEqual([]);
		await expect(lab.run(alpha1.delete(a))).rejects.toThrow(
			"it is referenced by beta.Widget default/default/w (r1) of beta in r1",
		);
		await lab.run(beta1.delete(beta1.id(Widget, "w")));
		await lab.run(alpha1.delete(a));
		expect(await alpha1.read(a)).toBeUndefined();
	});

	it("records the field to which a reference was moved, without a commit at its target", async () => {
		const { lab, alpha1, alpha2 } = await twoServices();
		await lab.run(Promise.all([alpha1.write(thing("here")), alpha2.write(thing("there"))]));
		const user = alpha1.id(Thing, "user");
		const fields = async () =>
			(await alpha1.shadow(user))?.outgoing.map(({ path, target, targetUid }) => [
				path,
				target?.name,
				targetUid !== "",
			]);
		const versions = () =>
			Promise.all([
				alpha1.backend.lookup(shadowId(alpha1, "here")),
				alpha2.backend.lookup(shadowId(alpha2, "there")),
			]).then((all) => all.map((each) => each?.version));
		await lab.run(alpha1.write(thing("user", { likes: [to("here"), to("there", "r2")] })));
		await lab.pass(1_000);
		expect(await fields()).toEqual([
			["likes", "here", true],
			["likes", "there", true],
		]);
		const before = await versions();
		expect(before).not.toContain(undefined);
		const labels = { other: to("there", "r2") };
		await lab.run(
			alpha1.write(thing("user", { labels, place: { case: "shelf", value: to("here") } })),
		);
		await lab.pass(1_000);
		expect(await fields()).toEqual(
			expect.arrayContaining([
				['labels["other"]', "there", true],
				["shelf", "here", true],
			]),
		);
		expect(await versions()).toEqual(before);
		await expect(lab.run(alpha2.delete(alpha2.id(Thing, "there")))).resolves.toBeUndefined();
	});

	it("refuses a reference to a missing target, to a region without deployment, and to an unreachable one", async () => {
		const { lab, alpha1, beta1 } = await twoServices();
		await expect(lab.run(beta1.write(widget("w", { needs: to("x") })))).rejects.toThrow(
			"needs (alpha.Thing default/default/x (r1)): alpha.Thing default/default/x (r1) does not exist",
		);
		await expect(lab.run(beta1.write(widget("w", { needs: to("x", "r9") })))).rejects.toThrow(
			'no deployment of alpha in region "r9" is known',
		);
		alpha1.crash();
		await expect(lab.run(beta1.write(widget("w", { needs: to("x") })))).rejects.toThrow(
			"alpha in r1 can't be reached, and nothing was written",
		);
		expect(await beta1.read(beta1.id(Widget, "w"))).toBeUndefined();
	});

	it("refuses a reference to a copy of another cluster's resource, by every rule", async () => {
		const { lab, alpha1, beta1 } = await twoServices();
		const id = { ...alpha1.id(Thing, "copy"), uid: "c" };
		const resource = { ...thing("copy"), id, origin: create(OriginSchema, { cluster: "west" }) };
		await alpha1.backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		for (const init of [{ needs: to("copy") }, { likes: [to("copy")] }]) {
			await expect(lab.run(beta1.write(widget("w", init)))).rejects.toThrow(
				"alpha.Thing default/default/copy (r1) is a copy of a resource of another cluster: only its own deployment can reference it",
			);
		}
		expect(await alpha1.shadow(id)).toBeUndefined();
		expect(await beta1.read(beta1.id(Widget, "w"))).toBeUndefined();
	});

	it("cascades and unsets in other services and regions", async () => {
		const { lab, alpha1, alpha2, beta1 } = await twoServices();
		await lab.run(alpha1.write(thing("a")));
		await lab.run(alpha2.write(thing("b", { belongsTo: to("a", "r1") })));
		await lab.run(beta1.write(widget("w", { belongsTo: to("b", "r2") })));
		await lab.run(beta1.write(widget("v", { likes: [to("a"), to("b", "r2")] })));
		await lab.pass(1_000);
		await lab.run(alpha1.delete(alpha1.id(Thing, "a")));
		await lab.pass(120_000);
		expect(await alpha1.read(alpha1.id(Thing, "a"))).toBeUndefined();
		expect(await alpha2.read(alpha2.id(Thing, "b"))).toBeUndefined();
		expect(await beta1.read(beta1.id(Widget, "w"))).toBeUndefined();
		const v = await beta1.read(beta1.id(Widget, "v"));
		expect(v?.data).toEqual(widget("v").data);
		for (const each of [alpha1, alpha2, beta1]) {
			expect(each.failures).toEqual([]);
		}
	});

	it("refuses to delete a resource that an unreachable region may reference, and names the region", async () => {
		const { lab, alpha1, beta1 } = await twoServices();
		const a = alpha1.id(Thing, "a");
		await lab.run(alpha1.write(thing("a")));
		await lab.run(beta1.write(widget("w", { likes: [to("a")] })));
		await lab.pass(1_000);
		beta1.crash();
		await expect(lab.run(alpha1.delete(a))).rejects.toThrow(
			"beta in r1 may reference it and can't be queried",
		);
		expect((await alpha1.shadow(a))?.lifecycle).toBe(1);
		await lab.run(beta1.start());
		await lab.run(alpha1.delete(a));
		await lab.pass(60_000);
		expect(await alpha1.read(a)).toBeUndefined();
		expect((await beta1.read(beta1.id(Widget, "w")))?.data).toEqual(widget("w").data);
	});

	it("drops a tentative source whose writer crashed, after a query", async () => {
		const { lab, alpha1, beta1 } = await twoServices();
		const a = alpha1.id(Thing, "a");
		await lab.run(alpha1.write(thing("a")));
		await lab.run(
			lab.client(beta1, alpha1).establishReferences({
				route: { from: { uid: beta1.info.uid, service: "beta" }, toUid: alpha1.info.uid },
				targets: [{ key: lab.keyOf(alpha1, a), rules: [1] }],
			}),
		);
		expect((await alpha1.shadow(a))?.sources).toMatchObject([{ tentative: true }]);
		await lab.pass(29_000);
		expect((await alpha1.shadow(a))?.sources).toHaveLength(1);
		await lab.pass(60_000);
		expect(await alpha1.shadow(a)).toBeUndefined();
	});

	it("refuses a write with too many new targets before their deployment establishes any", async () => {
		const called: string[] = [];
		const lab = new Lab(
			1,
			{},
			hooked(async (method) => void called.push(method)),
		);
		const types = { region: "r1", types: [Thing] };
		const alpha = await lab.add({ name: "alpha", service: "alpha", ...types });
		const beta = await lab.add({
			...{ name: "beta", service: "beta", region: "r1" },
			...{ types: [Widget], foreignTypes: [Thing] },
		});
		const names = Array.from({ length: 300 }, (_, at) => `t${at}`);
		for (const name of names) {
			await lab.run(alpha.write(thing(name)));
		}
		const write = (count: number) =>
			lab.run(
				beta.write(widget(`w${count}`, { likes: names.slice(0, count).map((name) => to(name)) })),
			);
		const outcomes = new Set<boolean>();
		// Targets that share a guard need one mutation: so more than 95 may fit.
		for (const count of [300, ...Array.from({ length: 60 }, (_, at) => 80 + at)]) {
			called.length = 0;
			const outcome = await write(count).then(
				() => "written",
				(failure: unknown) => String(failure),
			);
			const isWritten = outcome === "written";
			expect(outcome).toMatch(isWritten ? "" : /commit of \d+ mutations: at most 100 are allowed$/);
			expect(called.filter((each) => each === "EstablishReferences")).toHaveLength(
				isWritten ? 1 : 0,
			);
			outcomes.add(isWritten);
		}
		expect(outcomes.size).toBe(2);
	});
});
