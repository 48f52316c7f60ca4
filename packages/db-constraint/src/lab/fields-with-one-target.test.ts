import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { restore } from "../deployments/settling.fixture.ts";
import { nameOf } from "../simulation/trace-format.fixture.ts";
import {
	addSecond,
	applyDeletion,
	beginDeletion,
	type Init,
	keepLost,
	lostAndKept,
	nextSchema,
	type Rules,
	referenced,
	type World,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { oneDeployment, thing, to, widget } from "./things.fixture.ts";

const someUid: unknown = expect.stringMatching(/./);

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;
const all = { needs: to("a"), belongsTo: to("a"), likes: [to("a")] };

/** What each field of the widget has, in the order of their names. */
async function held({ recorded }: World, names: Readonly<Record<string, string>>) {
	const records = [...(await recorded()).values()];
	return records
		.map(({ path, rule, targetUid, deploymentUid }) => {
			const where = targetUid === "" ? "nowhere" : names[deploymentUid];
			return `${path} ${nameOf(OnDelete, rule)} ${where}`;
		})
		.sort();
}

/** Some fields hold `a` of alpha, and the others, which are written later, that of alpha-2. */
async function inTwo(first: Init, rules: Rules, fields: Init = all) {
	const world = await referenced(first, rules);
	const { lab, alpha, beta } = world;
	const second = await addSecond(world);
	await lab.run(beta.write(widget("w", fields)));
	await lab.pass(3_000);
	const names = { [alpha.info.uid]: "alpha", [second.info.uid]: "alpha-2" };
	return { ...world, second, held: () => held(world, names) };
}

describe("fields that hold one target, whose rules a new schema changes", () => {
	it.each<[string, Init, Rules, Rules, string]>([
		[
			"of one rule, which one of them keeps",
			{ needs: to("a"), likes: [to("a")] },
			{ needs: UNSET, likes: UNSET },
			{ needs: UNSET, likes: BLOCK },
			"likes",
		],
		[
			"of which one gets the former rule of the other one",
			{ needs: to("a"), belongsTo: to("a") },
			{ needs: CASCADE, belongs_to: UNSET },
			{ needs: UNSET, belongs_to: BLOCK },
			"belongs_to",
		],
		[
			"of which one is new, and gets the former rule of the other one",
			{ needs: to("a"), belongsTo: to("a") },
			{ needs: UNSET, belongs_to: undefined },
			{ needs: BLOCK, belongs_to: UNSET },
			"needs",
		],
	])(
		"keep it when a user writes something else: fields %s",
		async (_which, init, before, next, path) => {
			const world = await referenced(init, before);
			const { lab, alpha, a, recorded } = world;
			const { descriptor, pass, types } = nextSchema(world, next);
			await lab.run(pass.begin());
			await writeAsUser(world, descriptor, { ...init, note: "changed" });
			expect((await recorded()).get(path)?.targetUid).not.toBe("");
			await beginDeletion(world, alpha);
			await lab.run(pass.complete(never));
			expect((await recorded()).get(path)).toMatchObject({ rule: BLOCK, targetUid: someUid });
			await world.restartBeta(types);
			await lab.pass(600_000);
			expect(await alpha.read(a)).toBeDefined();
		},
	);

	it("keep their deployments when the rules rotate, a user writes, and one of the deployments is down", async () => {
		const first = { needs: to("a"), likes: [to("a")] };
		const rules = { needs: BLOCK, belongs_to: CASCADE, likes: UNSET };
		const world = await inTwo(first, rules);
		const { lab, second } = world;
		const { descriptor, pass } = nextSchema(world, {
			needs: CASCADE,
			belongs_to: UNSET,
			likes: BLOCK,
		});
		await lab.run(pass.begin());
		const before = ["belongs_to CASCADE alpha-2", "likes UNSET alpha", "needs BLOCK alpha"];
		second.crash();
		await writeAsUser(world, descriptor, { ...all, note: "changed" });
		expect(await world.held()).toEqual(before);
		await lab.run(second.start());
		await lab.run(pass.complete(never));
		const after = ["belongs_to UNSET alpha-2", "likes BLOCK alpha", "needs CASCADE alpha"];
		expect(await world.held()).toEqual(after);
	});

	it("keep their deployments when a user removes another field of the same rule", async () => {
		const first = { needs: to("a"), belongsTo: to("a") };
		const world = await inTwo(first, { needs: UNSET, belongs_to: UNSET, likes: BLOCK });
		const { lab } = world;
		const next = { needs: CASCADE, belongs_to: CASCADE, likes: UNSET };
		const { descriptor, pass } = nextSchema(world, next);
		await lab.run(pass.begin());
		await writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		await lab.run(pass.complete(never));
		expect(await world.held()).toEqual(["likes UNSET alpha-2", "needs CASCADE alpha"]);
	});
});

describe("a field whose new rule a field without a record gets too", () => {
	const before = { needs: UNSET, belongs_to: BLOCK, likes: undefined };
	const next = { needs: CASCADE, belongs_to: UNSET, likes: UNSET };
	const first = { needs: to("a"), likes: [to("a")] };

	it("keeps its deployment", async () => {
		const world = await inTwo(first, before);
		const { pass } = nextSchema(world, next);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		expect(await world.held()).toContain("belongs_to UNSET alpha-2");
		expect(await world.held()).toContain("needs CASCADE alpha");
	});

	it("is not cleared with what another deployment deletes", async () => {
		const world = await inTwo(first, before);
		const { lab, alpha, beta, w } = world;
		const { descriptor, pass } = nextSchema(world, next);
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		const stored = await beta.read(w);
		await applyDeletion(world, descriptor, "needs");
		expect(await beta.read(w)).toEqual(stored);
	});

	it("is not cleared if it has lost its target", async () => {
		const world = await referenced({ belongsTo: to("a") }, before);
		const { lab, beta, w } = world;
		const alpha = await lostAndKept(world);
		await lab.run(beta.write(widget("w", all)));
		const { descriptor, pass } = nextSchema(world, next);
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		const stored = await beta.read(w);
		await applyDeletion(world, descriptor, "needs");
		expect(await beta.read(w)).toEqual(stored);
	});
});

describe("a new field that names what another field with its rule holds", () => {
	it("takes its record, though the deployment of the target is down", async () => {
		const world = await referenced({ needs: to("a") }, { needs: UNSET, likes: UNSET });
		const { lab, alpha, beta, recorded } = world;
		alpha.crash();
		await lab.run(beta.write(widget("w", { needs: to("a"), likes: [to("a")] })));
		const { needs, likes } = Object.fromEntries(await recorded());
		expect(needs?.targetUid).not.toBe("");
		expect(likes).toEqual({ ...needs, path: "likes", field: "4" });
	});
});

describe("what a field has lost, and operators have decided to keep", () => {
	it.each<[string, Rules]>([
		["former rule", { needs: CASCADE, belongs_to: UNSET }],
		["rule", { needs: UNSET, belongs_to: UNSET }],
	])("is not what a new field has lost, which gets its %s", async (_which, rules) => {
		const init = { needs: to("a"), belongsTo: to("a") };
		const world = await referenced(init, { needs: UNSET, belongs_to: undefined });
		await keepLost(world);
		const { pass } = nextSchema(world, rules);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		const { needs, belongs_to } = Object.fromEntries(await world.recorded());
		expect(needs).toMatchObject({ missing: { isKept: true } });
		expect(belongs_to).toMatchObject({ targetUid: "", missing: { isKept: false, uid: "" } });
	});

	it("is not what a field has lost that a user adds: it needs a target", async () => {
		const world = await referenced({ needs: to("a") }, { needs: UNSET, likes: UNSET });
		const alpha = await keepLost(world);
		const { descriptor } = world.beta.current.constraints.context;
		const write = () => writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		await expect(write()).rejects.toThrow("does not exist");
		const a = await world.lab.run(alpha.write(thing("a")));
		await write();
		expect((await world.recorded()).get("likes")).toMatchObject({ targetUid: a.id?.uid });
	});

	it("stays kept if a user removes another field of the same rule, after that has changed", async () => {
		const init = { needs: to("a"), likes: [to("a")] };
		const world = await referenced(init, { needs: UNSET, likes: UNSET });
		await keepLost(world);
		const before = (await world.recorded()).get("needs");
		expect(before).toMatchObject({ missing: { isKept: true, uid: someUid } });
		const { descriptor, pass } = nextSchema(world, { needs: BLOCK, likes: BLOCK });
		await world.lab.run(pass.begin());
		await writeAsUser(world, descriptor, { needs: to("a") });
		await world.lab.run(pass.complete(never));
		const after = [...(await world.recorded()).values()];
		expect(after).toMatchObject([{ path: "needs", rule: BLOCK, missing: before?.missing }]);
	});
});

it("fields that have lost one target have one task to look it up", async () => {
	const world = await referenced(all, { needs: UNSET, belongs_to: UNSET, likes: UNSET });
	const { lab, alpha, beta, w } = world;
	await restore(lab, alpha);
	await lab.pass(600_000);
	const { outgoing = [], tasks = [] } = (await beta.shadow(w)) ?? {};
	expect(outgoing.map(({ targetUid }) => targetUid)).toEqual(["", "", ""]);
	expect(tasks.map(({ task }) => task.case)).toEqual(["resolve"]);
});

it("the entries of a map with one target have one record, which is of any of them", async () => {
	const { lab, alpha, id } = await oneDeployment();
	await lab.run(alpha.write(thing("a")));
	const recorded = async () => (await alpha.shadow(id("w")))?.outgoing ?? [];
	for (const key of ["x", "y"]) {
		await lab.run(alpha.write(thing("w", { labels: { x: to("a"), [key]: to("a") } })));
		expect(await recorded()).toMatchObject([{ path: `labels["${key}"]`, targetUid: someUid }]);
	}
	await lab.run(alpha.write(thing("w", { labels: { x: to("a") } })));
	expect(await recorded()).toMatchObject([{ path: 'labels["x"]', targetUid: someUid }]);
	await lab.run(alpha.write(thing("w", { labels: { x: to("a"), z: to("a") } })));
	await lab.run(alpha.delete(id("a")));
	await lab.pass(3_000);
	expect(await alpha.read(id("a"))).toBeUndefined();
	expect(await recorded()).toEqual([]);
});

describe("a field that a write adds while the active schema is incomplete", () => {
	const init = { needs: to("a"), likes: [to("a")] };

	/** `likes` names `a`, and becomes a reference with the rule of `needs`: it has no record yet. */
	async function begun() {
		const world = await referenced({ likes: [to("a")] }, { needs: BLOCK, likes: undefined });
		const { descriptor, pass } = nextSchema(world, { needs: BLOCK, likes: BLOCK });
		await world.lab.run(pass.begin());
		return { ...world, world, descriptor };
	}

	it("holds its target, though another one of its rule has no record yet", async () => {
		const { world, descriptor, lab, alpha, a } = await begun();
		await writeAsUser(world, descriptor, init);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it("does so if the deployment itself writes it", async () => {
		const { descriptor, lab, alpha, beta, a, w } = await begun();
		const stored = await beta.read(w);
		const { data } = widget("w", init);
		const resource = { ...stored, generation: newUlid(lab.runtime), data } as Resource;
		const put = { op: "put", resource, expectedVersion: resource.version } as const;
		await lab.run(beta.withDescriptor(descriptor).commit([put]));
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});
});
