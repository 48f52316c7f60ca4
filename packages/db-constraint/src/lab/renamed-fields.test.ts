import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { withFields, withRules } from "../simulation/schemas.fixture.ts";
import {
	addSecond,
	keepLost,
	nextSchema,
	type Rules,
	referenced,
	type World,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { thing, thingsInTwoRegions, to, widget } from "./things.fixture.ts";

const someUid: unknown = expect.stringMatching(/./);

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;

/** A schema of beta in which fields have other names: `needs` is `requires`. The data of the fixtures stays valid. */
function renaming(
	{ beta }: Pick<World, "beta">,
	rules: Rules = {},
	names: Parameters<typeof withFields>[1] = { needs: { name: "requires" } },
) {
	const types = [withFields(withRules(Widget, rules), names)];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...beta.current.constraints.context, descriptor });
	return { types, descriptor, pass };
}

async function recordsOf({ recorded }: World) {
	return [...(await recorded()).values()];
}

describe("a field that a new schema renames", () => {
	it("holds its target when a user writes something else before it is derived", async () => {
		const world = await referenced({ needs: to("a") });
		const { lab, alpha, a } = world;
		const { descriptor, pass } = renaming(world);
		await lab.run(pass.begin());
		await writeAsUser(world, descriptor, { needs: to("a"), note: "changed" });
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", targetUid: someUid }]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it.each<[string, Rules]>([
		["by the same rule", {}],
		["by another rule", { needs: UNSET }],
	])("keeps the decision of operators to keep what is lost, %s", async (_how, rules) => {
		const world = await referenced({ needs: to("a") });
		await keepLost(world);
		const { pass } = renaming(world, rules);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		const missing = { isKept: true, uid: someUid };
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", missing }]);
	});

	it("keeps its deployment", async () => {
		const world = await referenced({ needs: to("a") });
		await addSecond(world);
		const { pass } = renaming(world);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		expect(await recordsOf(world)).toMatchObject([{ deploymentUid: world.alpha.info.uid }]);
	});

	it("is derived though the deployment of its target is down", async () => {
		const world = await referenced({ needs: to("a") });
		world.alpha.crash();
		const { pass } = renaming(world);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", targetUid: someUid }]);
	});

	it("is told from a field that is dropped while another one becomes a reference", async () => {
		const world = await referenced({ needs: to("a") }, { needs: BLOCK, likes: BLOCK });
		const { lab, alpha } = world;
		const { descriptor, pass } = nextSchema(world, { needs: undefined, likes: BLOCK });
		await lab.run(pass.begin());
		alpha.crash();
		const written = writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		await expect(written).rejects.toThrow("can't be reached");
		await lab.run(alpha.start());
		await writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		expect(await recordsOf(world)).toMatchObject([{ path: "likes", targetUid: someUid }]);
	});

	it("holds its target when another field gets its former name", async () => {
		const world = await referenced({ needs: to("a") });
		const { lab, alpha, a } = world;
		const names = { needs: { name: "requires" }, likes: { name: "needs" } };
		const { descriptor, pass } = renaming(world, { needs: BLOCK, likes: UNSET }, names);
		await lab.run(pass.begin());
		await writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		const recorded = Object.fromEntries(await world.recorded());
		expect(recorded).toMatchObject({
			requires: { rule: BLOCK, targetUid: someUid },
			needs: { rule: UNSET, targetUid: someUid },
		});
		await writeAsUser(world, descriptor, { needs: to("a") });
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	describe("from which a user moves the target before it is derived", () => {
		const rules = { needs: BLOCK, likes: BLOCK };

		it("leaves it held", async () => {
			const world = await referenced({ needs: to("a") }, rules);
			const { lab, alpha, a } = world;
			const { descriptor, pass } = renaming(world, rules);
			await lab.run(pass.begin());
			await writeAsUser(world, descriptor, { likes: [to("a")] });
			await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
		});

		it("leaves it held while another deployment is down, so that nothing is derived", async () => {
			const { lab, alpha, far, beta } = await thingsInTwoRegions();
			const before = { ...rules, belongs_to: CASCADE };
			beta.crash();
			Object.assign(beta.spec, { types: [withRules(Widget, before)] });
			await lab.run(beta.start());
			const [a, w] = [alpha.id(Thing, "a"), beta.id(Widget, "w")];
			await lab.run(alpha.write(thing("a")));
			await lab.run(far.write(thing("f")));
			const belongsTo = to("f", "r2");
			await lab.run(beta.write(widget("w", { needs: to("a"), belongsTo })));
			await lab.pass(3_000);
			const { descriptor, pass } = renaming({ beta }, { ...before, belongs_to: UNSET });
			await lab.run(pass.begin());
			far.crash();
			await writeAsUser({ lab, beta, w }, descriptor, { likes: [to("a")], belongsTo });
			await expect(lab.run(pass.complete(never))).rejects.toThrow("can't be reached");
			await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
		});

		it("leaves the decision to keep it", async () => {
			const world = await referenced({ needs: to("a") }, rules);
			await keepLost(world);
			const { descriptor, pass } = renaming(world, rules);
			await world.lab.run(pass.begin());
			await writeAsUser(world, descriptor, { likes: [to("a")] });
			await world.lab.run(pass.complete(never));
			const missing = { isKept: true, uid: someUid };
			expect(await recordsOf(world)).toMatchObject([{ path: "likes", missing }]);
		});
	});

	it("is cleared by a deletion that has begun before", async () => {
		const world = await referenced({ needs: to("a") }, { needs: UNSET });
		const { lab, alpha, a } = world;
		const { pass, types } = renaming(world, { needs: UNSET });
		await lab.run(pass.begin());
		await lab.run(alpha.delete(a));
		await lab.run(pass.complete(never));
		await world.restartBeta(types);
		await lab.pass(600_000);
		expect(await recordsOf(world)).toEqual([]);
		expect(await alpha.read(a)).toBeUndefined();
	});
});

describe("two fields with one target that a new schema renames at once", () => {
	const init = { needs: to("a"), belongsTo: to("a") };
	const names = { needs: { name: "requires" }, belongs_to: { name: "owns" } };

	it.each(["needs", "belongs_to"])("keep what was decided about each: %s is kept", async (path) => {
		const rules = { needs: UNSET, belongs_to: UNSET };
		const world = await referenced(init, rules);
		const { lab, beta } = world;
		const { uid } = (await restore(lab, world.alpha)).info;
		const operators = operatorsOf(lab, beta);
		const missing = await operators.missing(uid);
		const decided = missing.filter((each) => each.path === path);
		await operators.settle(uid, Action.KEEP, decided);
		const { pass } = renaming(world, rules, names);
		await lab.run(pass.begin());
		await lab.run(pass.complete(never));
		const recorded = Object.fromEntries(await world.recorded());
		expect(recorded.requires?.missing?.isKept).toBe(path === "needs");
		expect(recorded.owns?.missing?.isKept).toBe(path === "belongs_to");
	});

	it("keep the deployments of both", async () => {
		const rules = { needs: BLOCK, belongs_to: CASCADE };
		const world = await referenced({ needs: to("a") }, rules);
		const { lab, alpha, beta, a } = world;
		const second = await addSecond(world);
		await lab.run(beta.write(widget("w", init)));
		await lab.pass(3_000);
		const same = { needs: BLOCK, belongs_to: BLOCK };
		const { descriptor, pass } = nextSchema(world, same);
		await lab.run(pass.begin());
		await lab.run(pass.complete(never));
		// One process decodes a stored object once, with the names of its schema.
		await writeAsUser(world, descriptor, { ...init, note: "changed" });
		const next = renaming(world, same, names);
		await lab.run(next.pass.begin());
		await lab.run(next.pass.complete(never));
		expect(await recordsOf(world)).toMatchObject([
			{ path: "requires", deploymentUid: alpha.info.uid },
			{ path: "owns", deploymentUid: second.info.uid },
		]);
		for (const deployment of [alpha, second]) {
			await expect(lab.run(deployment.delete(a))).rejects.toThrow("it is referenced by");
		}
	});
});
