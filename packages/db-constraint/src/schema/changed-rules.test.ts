import { Condition_State } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type Caller, isMarkedForDeletion, newUlid } from "@plinth/resource";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { derivationBatchSize } from "../commit/reference-plan.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { anyone } from "../lab/anyone.fixture.ts";
import { Lab, type LabDeployment } from "../lab/lab.fixture.ts";
import { thing, to, widget } from "../lab/things.fixture.ts";
import { missingReference } from "../shadow/recorded-references.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { nameOf } from "../simulation/trace-format.fixture.ts";
import { deriveReferences } from "./derive-references.ts";
import { SchemaPass } from "./schema-pass.ts";
import { ServiceDescriptor } from "./service-descriptor.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;

type Rules = Parameters<typeof withRules>[1];

/** The references of the widget. */
interface References {
	readonly needs?: ReturnType<typeof to>;
	readonly belongsTo?: ReturnType<typeof to>;
	readonly likes?: ReturnType<typeof to>[];
}

/** Things, and the widget `w` that references them, in a deployment whose next schema has other rules. */
async function nextRules(rules: Rules, init: References, before: Rules = {}, seed = 1) {
	const lab = new Lab(seed);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const far = await lab.add({ name: "far", service: "alpha", region: "r2", types: [Thing] });
	const listeners = new Set<() => Promise<void>>();
	const beta = await lab.add(
		{
			...{ name: "beta", service: "beta", region: "r1" },
			...{ types: [withRules(Widget, before)], foreignTypes: [Thing] },
		},
		(backend) =>
			decorateBackend(backend, {
				async commit(mutations, options) {
					const result = await backend.commit(mutations, options);
					for (const listener of listeners) {
						await listener();
					}
					return result;
				},
			}),
	);
	const likes = init.likes ?? [];
	for (const { name, region } of [init.needs, init.belongsTo, ...likes].flatMap(
		(reference) => reference ?? [],
	)) {
		await lab.run((region === "r2" ? far : alpha).write(thing(name ?? "")));
	}
	// One write establishes only so many references.
	for (let count = 50; count < likes.length; count += 50) {
		await lab.run(beta.write(widget("w", { ...init, likes: likes.slice(0, count) })));
		await lab.pass(3_000);
	}
	await lab.run(beta.write(widget("w", init)));
	await lab.pass(3_000);
	const types = [withRules(Widget, rules)];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const context = { ...beta.current.constraints.context, descriptor };
	const id = beta.id(Widget, "w");
	async function write(next: Parameters<typeof widget>[1], caller?: Caller): Promise<void> {
		const stored = await beta.read(id);
		if (stored === undefined) {
			throw new Error("the widget does not exist");
		}
		const { data } = widget("w", next);
		const resource = { ...stored, generation: newUlid(lab.runtime), ...(data && { data }) };
		const store = beta.withDescriptor(descriptor);
		const put = { op: "put", resource, expectedVersion: stored.version } as const;
		await lab.run(store.commit([put], { caller }));
	}
	return {
		...{ lab, alpha, far, beta, descriptor, context },
		name: nameOfKey(lab.keyOf(beta, id)),
		schemaPass: new SchemaPass(context),
		/** Calls a function after each commit of the deployment with the widget, until the returned one is called. */
		afterCommits(listener: () => Promise<void>): () => void {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		/** What the shadow of the widget records. */
		recorded: async () => (await beta.shadow(id))?.outgoing ?? [],
		tasks: async () => (await beta.shadow(id))?.tasks.map(({ task }) => task.case),
		/** A user writes the widget through a server with the next schema. */
		writeAsUser: (next: Parameters<typeof widget>[1]) => write(next, anyone),
		/** A server with the next schema writes the widget by itself. */
		writeAsDeployment: (next: Parameters<typeof widget>[1]) => write(next),
		/** Restarts the server with the next schema. */
		async restart(): Promise<void> {
			beta.crash();
			Object.assign(beta.spec, { types });
			await lab.run(beta.start());
		},
	};
}

/**
 * Two fields of the widget reference `a` in another deployment: `belongs_to`, and `needs`, for which it is recorded as missing.
 * It likes things that are missing, by name.
 */
async function oneOfTwo(missing: readonly string[], rules: Rules, seed = 1) {
	const reference = to("a", "r2");
	const likes = missing.map((name) => to(name, "r2"));
	const init = { needs: reference, belongsTo: reference, likes };
	const world = await nextRules(rules, init, {}, seed);
	const { beta, context, far, lab, name } = world;
	const a = await far.read(far.id(Thing, "a"));
	await restore(lab, far, a ? [a] : []);
	const stored = await readShadow(beta.backend, shadowName(lab.keyOf(beta, beta.id(Widget, "w"))));
	if (stored === undefined) {
		throw new Error(`${name.name} has no shadow`);
	}
	const { shadow } = stored;
	const outgoing = shadow.outgoing.map((each) =>
		each.path === "needs" && each.target !== undefined
			? missingReference({ ...each, target: each.target }, each, context.runtime.clock)
			: each,
	);
	await lab.run(replaceShadow(context, stored, { ...shadow, outgoing }));
	const { outgoing: records = [] } = (await beta.shadow(beta.id(Widget, "w"))) ?? {};
	expect(records.filter(({ targetUid }) => targetUid !== "")).toMatchObject([
		{ path: "belongs_to", rule: CASCADE },
	]);
	return { ...world, init };
}

type World = Awaited<ReturnType<typeof nextRules>>;

function complete({ lab, schemaPass }: World): Promise<void> {
	return lab.run(schemaPass.complete(new AbortController().signal));
}

/** The rules of the recorded references that have targets, by name of the target. */
async function heldBy({ recorded }: World): Promise<readonly string[]> {
	const held = (await recorded()).filter(({ targetUid }) => targetUid !== "");
	return held.map(({ target, rule }) => `${target?.name} ${nameOf(OnDelete, rule)}`).sort();
}

function namesOf(count: number): readonly string[] {
	return Array.from({ length: count }, (_, at) => `t${at}`);
}

async function isStored(deployment: LabDeployment, name: string): Promise<boolean> {
	return (await deployment.read(deployment.id(Thing, name))) !== undefined;
}

/** The deployment of the targets loses them in a restore, and operators keep the references to them. */
async function loseAndKeep({ lab, alpha, beta }: World) {
	const restored = await restore(lab, alpha);
	const operators = operatorsOf(lab, beta);
	const listed = await operators.missing(restored.info.uid);
	await operators.settle(restored.info.uid, Action.KEEP, listed);
}

/** Begins the next schema, and deletes the things: the server with the earlier schema can't clear anything any more. */
async function beginAndDelete({ lab, alpha, schemaPass }: World, names: readonly string[]) {
	await lab.run(schemaPass.begin());
	for (const name of names) {
		await lab.run(alpha.delete(alpha.id(Thing, name)));
		const shadow = await alpha.shadow(alpha.id(Thing, name));
		expect(shadow?.lifecycle).toBe(Lifecycle.DELETING);
	}
}

describe("references whose rule a new schema changes", () => {
	it("keep their targets between the commits of a pass", async () => {
		const names = namesOf(derivationBatchSize + 5);
		const likes = names.map((name) => to(name));
		const world = await nextRules({ likes: BLOCK }, { likes });
		const { lab, alpha, recorded, schemaPass } = world;
		await lab.run(schemaPass.begin());
		const left = new Set<string>();
		const stop = world.afterCommits(async () => {
			const outgoing = await recorded();
			expect(outgoing.map(({ targetUid }) => targetUid)).not.toContain("");
			const earlier = outgoing.filter(({ rule }) => rule === UNSET);
			const name = earlier[0]?.target?.name ?? "";
			if (earlier.length > 0 && earlier.length < names.length) {
				// The controllers derive them if the pass does not.
				expect(await world.tasks()).toContain("resolve");
			}
			if (earlier.length < names.length && name !== "" && left.size === 0) {
				left.add(name);
				await alpha.delete(alpha.id(Thing, name));
			}
		});
		await complete(world);
		stop();
		// By the earlier rule, its deletion was not refused: it waits for the widget.
		const [deleted = ""] = left;
		const marked = await alpha.read(alpha.id(Thing, deleted));
		expect(marked && isMarkedForDeletion(marked)).toBe(true);
		expect(await heldBy(world)).toEqual(names.map((name) => `${name} BLOCK`).sort());
		await world.restart();
		await lab.pass(120_000);
		expect(await isStored(alpha, deleted)).toBe(true);
		const other = names.find((name) => !left.has(name)) ?? "";
		const refused = lab.run(alpha.delete(alpha.id(Thing, other)));
		await expect(refused).rejects.toThrow("it is referenced by");
		await world.writeAsUser({ likes: [] });
		await lab.pass(120_000);
		expect(await isStored(alpha, deleted)).toBe(false);
	});

	it("keep their targets when users write what the pass has not reached", async () => {
		const init = { needs: to("n"), likes: [to("t"), to("far", "r2")] };
		const world = await nextRules({ needs: UNSET, likes: BLOCK }, init);
		const { lab, alpha, far, recorded, schemaPass } = world;
		const before = await recorded();
		await lab.run(schemaPass.begin());
		far.crash();
		await world.writeAsUser({ ...init, note: "changed" });
		expect(await recorded()).toEqual(before);
		await expect(lab.run(alpha.delete(alpha.id(Thing, "n")))).rejects.toThrow(
			"it is referenced by",
		);
		await lab.run(alpha.delete(alpha.id(Thing, "t")));
		await lab.pass(60_000);
		expect(await isStored(alpha, "t")).toBe(true);
		await expect(complete(world)).rejects.toThrow("far");
		expect(await recorded()).toEqual(before);
		await lab.run(far.start());
		await complete(world);
		expect(await heldBy(world)).toEqual(["far BLOCK", "n UNSET", "t BLOCK"]);
	});

	it("are released by users who clear them before the pass has reached them", async () => {
		const world = await nextRules({ likes: BLOCK }, { likes: [to("a"), to("b")] });
		const { lab, alpha, schemaPass } = world;
		await lab.run(schemaPass.begin());
		await world.writeAsUser({ likes: [to("b")] });
		expect(await heldBy(world)).toEqual(["b UNSET"]);
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		expect(await isStored(alpha, "a")).toBe(false);
		await complete(world);
		expect(await heldBy(world)).toEqual(["b BLOCK"]);
	});

	it.each<[string, { before: Rules; rules: Rules; during: string[]; after: string[] }]>([
		[
			"both rules have changed",
			{
				before: { belongs_to: undefined },
				rules: { needs: UNSET, belongs_to: CASCADE },
				during: ["a BLOCK"],
				after: ["a CASCADE", "a UNSET"],
			},
		],
		[
			"one field is new",
			{
				before: { belongs_to: undefined },
				rules: { belongs_to: CASCADE },
				during: ["a BLOCK"],
				after: ["a BLOCK", "a CASCADE"],
			},
		],
		[
			"a field has the former rule of another one",
			{
				before: {},
				rules: { needs: CASCADE, belongs_to: UNSET },
				during: ["a BLOCK", "a CASCADE"],
				after: ["a CASCADE", "a UNSET"],
			},
		],
	])("are recorded once where two fields have one target: %s", async (_what, example) => {
		const { before, rules, during, after } = example;
		const init = { needs: to("a"), belongsTo: to("a") };
		const world = await nextRules(rules, init, before);
		const { lab, schemaPass } = world;
		await lab.run(schemaPass.begin());
		await world.writeAsUser({ ...init, note: "changed" });
		expect(await heldBy(world)).toEqual(during);
		await complete(world);
		expect(await heldBy(world)).toEqual(after);
		expect(await world.tasks()).not.toContain("resolve");
	});

	it("are all recorded by the new rule once the pass has ended, though many targets are being deleted", async () => {
		const names = namesOf(derivationBatchSize + 5);
		const likes = names.map((name) => to(name));
		const world = await nextRules({ likes: BLOCK }, { likes });
		const { lab, alpha } = world;
		await beginAndDelete(world, names);
		await complete(world);
		expect(await heldBy(world)).toEqual(names.map((name) => `${name} BLOCK`).sort());
		expect(await world.tasks()).toEqual([]);
		await world.restart();
		await world.writeAsUser({ likes: [] });
		await lab.pass(120_000);
		for (const name of names) {
			expect(await isStored(alpha, name)).toBe(false);
		}
	});

	it("do not keep another field from being cleared, though many targets are being deleted", async () => {
		const names = namesOf(4 * derivationBatchSize + 5);
		const likes = names.map((name) => to(name));
		const init = { belongsTo: to("owner"), likes };
		const world = await nextRules({ belongs_to: UNSET, likes: BLOCK }, init, { belongs_to: UNSET });
		const { lab, alpha, recorded } = world;
		await beginAndDelete(world, names);
		await complete(world);
		await world.restart();
		await lab.run(alpha.delete(alpha.id(Thing, "owner")));
		await lab.pass(10_000);
		expect(await isStored(alpha, "owner")).toBe(false);
		expect(new Set((await recorded()).map(({ path }) => path))).toEqual(new Set(["likes"]));
	});

	it.each([1, 2, 3, 4])(
		"are all recorded by the new rule once the pass has ended, though many other targets are missing (seed %s)",
		async (seed) => {
			const likes = namesOf(3 * derivationBatchSize).map((name) => to(name));
			const init = { needs: to("n", "r2"), belongsTo: to("b", "r2"), likes };
			const world = await nextRules({ needs: UNSET, belongs_to: UNSET }, init, {}, seed);
			const { lab, alpha, schemaPass } = world;
			await restore(lab, alpha);
			await lab.run(schemaPass.begin());
			await complete(world);
			expect(await heldBy(world)).toEqual(["b UNSET", "n UNSET"]);
		},
	);

	it.each(["pass", "user"])(
		"keep what was lost, and the decision to keep it, if they have no target: a %s comes first",
		async (first) => {
			const init = { likes: [to("a")] };
			const world = await nextRules({ likes: BLOCK }, init);
			const { lab, recorded, schemaPass } = world;
			await loseAndKeep(world);
			const before = await recorded();
			expect(before).toMatchObject([{ rule: UNSET, targetUid: "", missing: { isKept: true } }]);
			expect(before[0]?.missing?.uid).not.toBe("");
			await lab.run(schemaPass.begin());
			const after = before.map(({ missing }) => ({ rule: BLOCK, targetUid: "", missing }));
			if (first === "user") {
				await world.writeAsUser({ ...init, note: "changed" });
				expect(await recorded()).toMatchObject(after);
			}
			await complete(world);
			expect(await recorded()).toMatchObject(after);
		},
	);

	it("are reported if another field of the resource has the same target, and is kept", async () => {
		const init = { needs: to("a"), belongsTo: to("a") };
		const world = await nextRules({}, init, { belongs_to: undefined });
		const { lab, beta, recorded, schemaPass } = world;
		await loseAndKeep(world);
		const before = await recorded();
		expect(before).toMatchObject([{ path: "needs", targetUid: "", missing: { isKept: true } }]);
		await lab.run(schemaPass.begin());
		await complete(world);
		const after = new Map((await recorded()).map((each) => [each.path, each]));
		expect(after.get("needs")?.missing).toEqual(before[0]?.missing);
		expect(after.get("belongs_to")).toMatchObject({
			rule: CASCADE,
			targetUid: "",
			missing: { isKept: false, uid: "" },
		});
		expect((await beta.read(beta.id(Widget, "w")))?.status.references?.conditions).toMatchObject([
			{ type: "ReferencesResolved", state: Condition_State.FALSE },
		]);
	});

	it.each(["a user", "the deployment"])(
		"keep the target that one of two fields has, which get one rule: written by %s",
		async (by) => {
			const world = await oneOfTwo([], { belongs_to: BLOCK });
			const { init, lab, schemaPass } = world;
			await lab.run(schemaPass.begin());
			const write = by === "a user" ? world.writeAsUser : world.writeAsDeployment;
			await write({ ...init, note: "changed" });
			expect(await heldBy(world)).toEqual(["a CASCADE"]);
			await complete(world);
			expect(await heldBy(world)).toEqual(["a BLOCK", "a BLOCK"]);
		},
	);

	it.each(["a user", "the deployment"])(
		"do not replace the record of a field without a target while another one has it: written by %s",
		async (by) => {
			const world = await oneOfTwo([], { likes: BLOCK });
			const { init, lab, recorded, schemaPass } = world;
			const before = await recorded();
			await lab.run(schemaPass.begin());
			const write = by === "a user" ? world.writeAsUser : world.writeAsDeployment;
			await write({ ...init, note: "changed" });
			expect(await recorded()).toEqual(before);
		},
	);

	it.each([1, 2, 3, 4])(
		"keep the target that one of two fields has, though many other targets are missing (seed %s)",
		async (seed) => {
			const names = namesOf(3 * derivationBatchSize);
			const world = await oneOfTwo(names, { belongs_to: BLOCK }, seed);
			await world.lab.run(world.schemaPass.begin());
			await complete(world);
			expect(await heldBy(world)).toContain("a BLOCK");
		},
	);

	it("keep their targets when operators settle another reference of the resource", async () => {
		const world = await nextRules({ likes: BLOCK }, { likes: [to("a"), to("b")] });
		const { lab, alpha, beta, descriptor, schemaPass } = world;
		const b = await alpha.read(alpha.id(Thing, "b"));
		const restored = await restore(lab, alpha, b ? [b] : []);
		expect(await heldBy(world)).toEqual(["b UNSET"]);
		await lab.run(schemaPass.begin());
		const store = beta.withDescriptor(descriptor);
		const operators = operatorsOf(lab, beta, { descriptor, store });
		const missing = await operators.missing(restored.info.uid);
		expect(missing).toMatchObject([{ target: { name: "a" } }]);
		await operators.settle(restored.info.uid, Action.UNSET, missing);
		expect(await heldBy(world)).toEqual(["b UNSET"]);
		await lab.run(restored.delete(restored.id(Thing, "b")));
		await lab.pass(60_000);
		expect(await isStored(restored, "b")).toBe(true);
	});

	it("keep the incarnation that was lost if it is missing in a successor", async () => {
		const world = await nextRules({ likes: BLOCK }, { likes: [to("a")] });
		const { lab, alpha, context, name, recorded, schemaPass } = world;
		const [{ targetUid = "" } = {}] = await recorded();
		expect(targetUid).not.toBe("");
		await lab.run(schemaPass.begin());
		await lab.succeed(alpha, []);
		await lab.run(deriveReferences(context, name, { reestablish: () => true }));
		expect(await recorded()).toMatchObject([
			{ targetUid: "", rule: BLOCK, missing: { uid: targetUid } },
		]);
	});
});
