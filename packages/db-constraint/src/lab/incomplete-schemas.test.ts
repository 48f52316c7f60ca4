import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	CheckMetaOwnersRequest_OwnershipSchema,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { clearReferences } from "../commit/clear-references.ts";
import { deletion } from "../commit/removals.ts";
import { SubscribedDeletingHandler } from "../controller/subscribed-deleting-handler.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { checkOwnerships } from "../protocol/check-ownership.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { deployedOf, shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { anyone } from "./anyone.fixture.ts";
import { Lab } from "./lab.fixture.ts";
import { oneDeployment, thing, thingsInTwoRegions, to, widget } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;

/** `w` of beta likes `a` of alpha, and needs `n` of another deployment, by a rule that a schema of beta has begun to change. */
async function begun() {
	const { lab, alpha, far, beta } = await thingsInTwoRegions();
	const a = await lab.run(alpha.write(thing("a")));
	await lab.run(far.write(thing("n")));
	await lab.run(beta.write(widget("w", { needs: to("n", "r2"), likes: [to("a")] })));
	await lab.pass(3_000);
	const types = [withRules(Widget, { needs: CASCADE })];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const context = { ...beta.current.constraints.context, descriptor };
	const pass = new SchemaPass(context);
	const w = beta.id(Widget, "w");
	return {
		...{ lab, alpha, far, beta, a, pass, descriptor, context },
		store: beta.withDescriptor(descriptor),
		recorded: async () => (await beta.shadow(w))?.outgoing ?? [],
	};
}

type World = Awaited<ReturnType<typeof begun>>;

function lose({ lab, far }: World, state: string): void {
	if (state === "down") {
		far.crash();
	} else {
		lab.deployments.delete("far");
		lab.changed();
	}
}

describe("while a schema waits for a deployment that has targets of a changed rule", () => {
	it.each(["down", "unknown"])("controllers clear other fields: it is %s", async (state) => {
		const world = await begun();
		const { lab, alpha, far, pass, context, store, a, recorded } = world;
		await lab.run(pass.begin());
		lose(world, state);
		await expect(lab.run(pass.complete(never))).rejects.toThrow(/reached|unknown/);
		const before = (await recorded()).filter(({ path }) => path === "needs");
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		expect((await alpha.shadow(alpha.id(Thing, "a")))?.lifecycle).toBe(Lifecycle.DELETING);
		const deletion = {
			deploymentUid: alpha.info.uid,
			target: lab.keyOf(alpha, alpha.id(Thing, "a")),
			targetUid: a.id?.uid ?? "",
		};
		await lab.run(new SubscribedDeletingHandler(context, store).handle(deletion));
		await lab.pass(5_000);
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
		expect(await recorded()).toEqual(before);
		lab.deployments.set("far", far);
		lab.changed();
		if (state === "down") {
			await lab.run(far.start());
		}
		await lab.run(pass.complete(never));
		expect(await recorded()).toMatchObject([{ ...before[0], rule: CASCADE }]);
	});

	it.each(["down", "unknown"])("operators settle other fields: it is %s", async (state) => {
		const world = await begun();
		const { lab, alpha, beta, pass, descriptor, store, recorded } = world;
		const restored = await restore(lab, alpha);
		await lab.run(pass.begin());
		lose(world, state);
		const operators = operatorsOf(lab, beta, { descriptor, store });
		const missing = await operators.missing(restored.info.uid);
		expect(await operators.settle(restored.info.uid, Action.UNSET, missing)).toEqual(["SETTLED"]);
		expect(await recorded()).toMatchObject([{ path: "needs", rule: BLOCK }]);
	});
});

describe("while a schema has changed the rule of a target that is being deleted in the own deployment", () => {
	it("other fields are cleared", async () => {
		const lab = new Lab(1);
		const types = [withRules(Thing, { needs: UNSET })];
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "", types });
		for (const name of ["a", "b"]) {
			await lab.run(alpha.write(thing(name)));
		}
		await lab.run(alpha.write(thing("w", { needs: to("a"), likes: [to("b")] })));
		const next = [withRules(Thing, { needs: CASCADE })];
		const descriptor = new ServiceDescriptor({ types: next, service: "alpha" });
		const context = { ...alpha.current.constraints.context, descriptor };
		await lab.run(new SchemaPass(context).begin());
		const store = alpha.withDescriptor(descriptor);
		const a = await alpha.read(alpha.id(Thing, "a"));
		await lab.run(store.commit(a === undefined ? [] : deletion(lab.runtime, a)));
		expect((await alpha.shadow(alpha.id(Thing, "a")))?.lifecycle).toBe(Lifecycle.DELETING);
		const user = await alpha.read(alpha.id(Thing, "w"));
		if (user === undefined) {
			throw new Error("the thing does not exist");
		}
		const stored = await readShadow(alpha.backend, shadowName(keyOf(alpha.id(Thing, "w"), "")));
		if (stored === undefined) {
			throw new Error("the thing has no shadow");
		}
		const b = stored.shadow.outgoing.filter(({ target }) => target?.name === "b");
		await lab.run(clearReferences(context, store, { resource: user, stored }, b));
		const { outgoing = [] } = (await alpha.shadow(alpha.id(Thing, "w"))) ?? {};
		expect(outgoing).toMatchObject([{ path: "needs", rule: CASCADE }]);
		expect(outgoing[0]?.targetUid).not.toBe("");
	});
});

describe("while a schema has changed the rule of a target in the own deployment", () => {
	/** Things, by a schema with these rules, and a next one. */
	async function started(rules: Parameters<typeof withRules>[1]) {
		const world = await oneDeployment();
		const { lab, alpha, id } = world;
		const start = async (next: typeof rules) => {
			alpha.crash();
			Object.assign(alpha.spec, { types: [withRules(Thing, next)] });
			await lab.run(alpha.start());
		};
		await start(rules);
		let pass: SchemaPass | undefined;
		return {
			...{
				...world,
				start,
				complete: async () => lab.run(pass?.complete(never) ?? Promise.resolve()),
			},
			/** A schema has begun, and a user changes something else. */
			async change(next: typeof rules) {
				const descriptor = new ServiceDescriptor({
					types: [withRules(Thing, next)],
					service: "alpha",
				});
				const context = { ...alpha.current.constraints.context, descriptor };
				pass = new SchemaPass(context);
				await lab.run(pass.begin());
				const stored = (await alpha.read(id("w"))) as Resource;
				const resource = {
					...stored,
					generation: newUlid(lab.runtime),
					labels: { changed: "yes" },
				};
				const put = { op: "put", resource, expectedVersion: stored.version } as const;
				await lab.run(alpha.withDescriptor(descriptor).commit([put], { caller: anyone }));
				return (await alpha.shadow(id("w")))?.outgoing;
			},
		};
	}

	it.each<[string, OnDelete | undefined]>([
		["60 targets get another rule", UNSET],
		["60 names become references", undefined],
	])("a user changes something else: %s", async (_what, before) => {
		const { lab, alpha, change, complete } = await started({ likes: before });
		const likes = Array.from({ length: 60 }, (_, at) => to(`t-${at}`));
		for (const { name } of likes) {
			await lab.run(alpha.write(thing(name)));
		}
		// One commit has no room for the sources of all of them.
		for (const count of [30, 60]) {
			await lab.run(alpha.write(thing("w", { likes: likes.slice(0, count) })));
		}
		expect(await change({ likes: BLOCK })).toHaveLength(60);
		await complete();
		const { outgoing = [] } = (await alpha.shadow(alpha.id(Thing, "w"))) ?? {};
		expect(outgoing.filter(({ targetUid }) => targetUid !== "")).toHaveLength(60);
	});

	it("a user changes something else: it is missing", async () => {
		const { lab, alpha, start, change } = await started({ needs: undefined });
		await lab.run(alpha.write(thing("w", { needs: to("gone") })));
		await start({ needs: UNSET });
		expect(await change({ needs: BLOCK })).toMatchObject([{ path: "needs", targetUid: "" }]);
	});

	it("a user changes something else: it is being deleted", async () => {
		const { lab, alpha, id, change } = await started({ needs: BLOCK, belongs_to: CASCADE });
		const a = await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("w", { belongsTo: to("a") })));
		await lab.run(alpha.write(thing("x", { needs: to("w") })));
		await lab.run(alpha.delete(id("a")));
		expect((await alpha.shadow(id("a")))?.lifecycle).toBe(Lifecycle.DELETING);
		const recorded = await change({ needs: BLOCK, belongs_to: BLOCK });
		expect(recorded).toMatchObject([{ path: "belongs_to", targetUid: a.id?.uid }]);
	});
});

describe("while a schema is incomplete", () => {
	it("an owner that must reference what it owns is not known", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const [owned, owner] = [id("owned"), await lab.run(alpha.write(thing("owner")))];
		await lab.run(alpha.write(thing("owned")));
		const descriptor = new ServiceDescriptor({
			types: [withRules(Thing, { needs: UNSET })],
			service: "alpha",
		});
		const { context } = alpha.current.constraints;
		const pass = new SchemaPass({ ...context, descriptor });
		const check = async () => {
			const ownership = create(CheckMetaOwnersRequest_OwnershipSchema, {
				...{ ownee: keyOf(owned, ""), owner: keyOf(id("owner"), "") },
				...{ ownerUid: owner.id?.uid ?? "", requiresOwnerReference: true },
			});
			const from = deployedOf(context.environment.self);
			return lab.run(checkOwnerships(context, from, [ownership]));
		};
		expect(await check()).toEqual([Verdict.NOT_VALID]);
		await lab.run(pass.begin());
		expect(await check()).toEqual([Verdict.UNSPECIFIED]);
		await lab.run(pass.complete(never));
		expect(await check()).toEqual([Verdict.NOT_VALID]);
	});
});
