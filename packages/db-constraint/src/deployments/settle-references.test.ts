import { create } from "@bufbuild/protobuf";
import { Condition_State, OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { allowed, type Caller, CallerToken, referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { derivationBatchSize } from "../commit/reference-plan.ts";
import type { LabDeployment } from "../lab/lab.fixture.ts";
import { thing, thingsInTwoRegions, to, widget } from "../lab/things.fixture.ts";
import { Action, operatorsOf, restore, startBoth } from "./settling.fixture.ts";

const fields = {
	blocks: { needs: to("a") },
	cascades: { belongsTo: to("a") },
	unsets: { likes: [to("a"), to("b")] },
};

/** Widgets with a reference of each rule to the thing `a`, which was lost in a restore. */
async function lost() {
	const { lab, alpha, beta } = await startBoth();
	const { id } = await lab.run(alpha.write(thing("a")));
	const b = await lab.run(alpha.write(thing("b")));
	for (const [name, init] of Object.entries(fields)) {
		await lab.run(beta.write(widget(name, init)));
	}
	await lab.pass(5_000);
	const stored = await alpha.read(alpha.id(Thing, b.id?.name ?? ""));
	const restored = await restore(lab, alpha, stored === undefined ? [] : [stored]);
	return { lab, beta, restored, aUid: id?.uid ?? "", operators: operatorsOf(lab, beta) };
}

function conditionOf(resource: Resource | undefined) {
	return resource?.status.references?.conditions.find(({ type }) => type === "ReferencesResolved");
}

/** A caller who may read only resources with these names. */
function readerOf(...names: readonly string[]): Caller {
	return {
		token: new CallerToken("a-token"),
		mayRead: ({ id }) => id !== undefined && names.includes(id.name),
		decideReference: () => allowed,
	};
}

async function dataOf(deployment: LabDeployment, name: string) {
	return (await deployment.read(deployment.id(Widget, name)))?.data;
}

describe("references without a target", () => {
	it("are listed with the incarnation that was lost, and since when", async () => {
		const { operators, restored, aUid } = await lost();
		const missing = await operators.missing(restored.info.uid);
		const target = { kind: "Thing", name: "a", region: "r1" };
		const rules = { blocks: OnDelete.BLOCK, cascades: OnDelete.CASCADE, unsets: OnDelete.UNSET };
		const paths = { blocks: "needs", cascades: "belongs_to", unsets: "likes" };
		expect(missing.toSorted((x, y) => x.rule - y.rule)).toMatchObject(
			(["blocks", "cascades", "unsets"] as const).map((name) => ({
				holder: { kind: "Widget", name, region: "r1" },
				...{ path: paths[name], target, targetUid: aUid, rule: rules[name], isKept: false },
			})),
		);
		expect(missing.every(({ since }) => since !== undefined)).toBe(true);
	});

	it("are listed in pages that together have each once", async () => {
		const { lab, beta, operators, restored } = await lost();
		for (let at = 0; at < 25; at++) {
			await lab.run(restored.write(thing(`t${at}`)));
			await lab.run(beta.write(widget(`w${at}`, { likes: [to(`t${at}`)], needs: to(`t${at}`) })));
		}
		await lab.pass(5_000);
		const again = await restore(lab, restored);
		const found: string[] = [];
		let pageToken = "";
		let pages = 0;
		do {
			const deploymentUid = again.info.uid;
			const page = await lab.run(
				operators.client.listMissing({ deploymentUid, pageSize: 4, pageToken }),
			);
			found.push(
				...page.references.map(
					({ holder, path, target }) => `${holder?.name} ${path} ${target?.name}`,
				),
			);
			expect(page.total).toBe(54n);
			pageToken = page.nextPageToken;
			pages += 1;
		} while (pageToken !== "");
		expect(pages).toBeGreaterThan(10);
		expect(found).toHaveLength(54);
		expect(new Set(found).size).toBe(54);
	});

	it("are unset, of whatever rule, and nothing else is", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		expect(await operators.settle(uid, Action.UNSET, missing, true)).toEqual(
			missing.map(() => "SETTLED"),
		);
		expect(await operators.missing(uid)).toHaveLength(3);
		expect(await operators.settle(uid, Action.UNSET, missing)).toEqual(
			missing.map(() => "SETTLED"),
		);
		const left = { blocks: {}, cascades: {}, unsets: { likes: [to("b")] } };
		for (const [name, init] of Object.entries(left)) {
			expect(await dataOf(beta, name)).toEqual(widget(name, init).data);
			const stored = await beta.read(beta.id(Widget, name));
			expect(conditionOf(stored)).toMatchObject({ state: 1, message: "" });
		}
		expect(await operators.missing(uid)).toEqual([]);
		expect(await operators.settle(uid, Action.UNSET, missing)).toEqual(missing.map(() => "GONE"));
		await lab.run(restored.delete(restored.id(Thing, "b")));
		await lab.pass(10_000);
		expect(await dataOf(beta, "unsets")).toEqual(widget("unsets").data);
	});

	it("are cascaded: the resources are deleted unless others block that", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		const next = referenceTo({ type: Widget.type, name: "blocks" });
		await lab.run(beta.write(widget("follows", { next })));
		expect(await operators.settle(uid, Action.CASCADE, missing, true)).toEqual(
			missing.map(() => "SETTLED"),
		);
		expect(await beta.read(beta.id(Widget, "blocks"))).toBeDefined();
		await operators.settle(uid, Action.CASCADE, missing);
		await lab.pass(1_000);
		for (const name of [...Object.keys(fields), "follows"]) {
			expect(await beta.read(beta.id(Widget, name))).toBeUndefined();
		}
	});

	it("are not cascaded to what others block, which a refusal names to those who may read it", async () => {
		const { lab, alpha } = await startBoth();
		const other = await lab.add({ name: "r2", service: "alpha", region: "r2", types: [Thing] });
		await lab.run(alpha.write(thing("a")));
		await lab.run(other.write(thing("holder", { needs: to("a", "r1") })));
		await lab.run(other.write(thing("blocker", { needs: to("holder") })));
		const { info } = await restore(lab, alpha);
		for (const [mayRead, blocker] of Object.entries({
			blocker: /REFUSED: .* is referenced by alpha.Thing default\/default\/blocker/,
			nothing: /REFUSED: .* is referenced by 1 resource .*that you may not read/,
		})) {
			const operators = operatorsOf(lab, other, { caller: readerOf("holder", mayRead) });
			const missing = await operators.missing(info.uid);
			for (const dryRun of [true, false]) {
				const settled = await operators.settle(info.uid, Action.CASCADE, missing, dryRun);
				expect(settled).toEqual([expect.stringMatching(blocker)]);
			}
		}
		expect(await other.read(other.id(Thing, "holder"))).toMatchObject({ metadata: {} });
	});

	it("are kept: no longer reported, still listed, and resolved when their targets are back", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		expect(await operators.settle(uid, Action.KEEP, missing)).toEqual(missing.map(() => "SETTLED"));
		await lab.pass(60_000);
		for (const [name, init] of Object.entries(fields)) {
			const stored = await beta.read(beta.id(Widget, name));
			expect(stored?.data).toEqual(widget(name, init).data);
			expect(conditionOf(stored)).toMatchObject({ state: 1 });
		}
		expect(await operators.missing(uid)).toMatchObject(missing.map(() => ({ isKept: true })));
		const { deployments } = await lab.run(operators.client.listDeployments({}));
		expect(deployments[0]).toMatchObject({ missing: 3n, kept: 3n });
		await lab.run(restored.write(thing("a")));
		await lab.pass(60_000);
		expect(await operators.missing(uid)).toEqual([]);
		const deletion = lab.run(restored.delete(restored.id(Thing, "a")));
		await expect(deletion).rejects.toThrow(
			"it is referenced by beta.Widget default/default/blocks",
		);
	});

	it("are left alone if their target is back, even if that was not noticed yet", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		await lab.run(restored.write(thing("a")));
		for (const action of [Action.CASCADE, Action.UNSET]) {
			expect(await operators.settle(uid, action, missing)).toEqual(missing.map(() => "GONE"));
		}
		for (const [name, init] of Object.entries(fields)) {
			expect(await dataOf(beta, name)).toEqual(widget(name, init).data);
		}
	});

	it("are all looked up, however many a resource has", async () => {
		const { lab, alpha, beta } = await startBoth();
		const names = Array.from({ length: 60 }, (_, at) => `t${at}`);
		for (const name of names) {
			await lab.run(alpha.write(thing(name)));
		}
		const likes = names.map((name) => to(name));
		await lab.run(beta.write(widget("w", { likes: likes.slice(0, 30) })));
		await lab.run(beta.write(widget("w", { likes })));
		await lab.pass(5_000);
		const restored = await restore(lab, alpha);
		const operators = operatorsOf(lab, beta);
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		expect(missing).toHaveLength(60);
		for (const name of names) {
			await lab.run(restored.write(thing(name)));
		}
		expect(await operators.settle(uid, Action.UNSET, missing)).toEqual(missing.map(() => "GONE"));
		expect(await dataOf(beta, "w")).toEqual(widget("w", { likes }).data);
	});

	it.each([1, 2, 3, 4, 5, 6])(
		"are all looked up, also where two fields name each of a batch (%s)",
		async (draws) => {
			const { lab, alpha, far } = await thingsInTwoRegions();
			const names = Array.from({ length: derivationBatchSize }, (_, at) => `t${at}`);
			for (const name of names) {
				await lab.run(far.write(thing(name)));
			}
			const likes = names.map((name) => to(name, "r2"));
			const labels = Object.fromEntries(names.toReversed().map((name) => [name, to(name, "r2")]));
			for (const fields of [{ likes }, { likes, labels }]) {
				await lab.run(alpha.write(thing("w", fields)));
				await lab.pass(3_000);
			}
			const restored = await restore(lab, far);
			const operators = operatorsOf(lab, alpha);
			const missing = await operators.missing(restored.info.uid);
			await lab.run(restored.write(thing("t0")));
			for (let drawn = 0; drawn < draws; drawn++) {
				lab.runtime.random.next();
			}
			const outcomes = await operators.settle(restored.info.uid, Action.UNSET, missing);
			const back = missing.flatMap(({ target }, at) => (target?.name === "t0" ? outcomes[at] : []));
			expect(back).toEqual(["GONE", "GONE"]);
		},
	);

	it("are left alone if another incarnation was lost since they were listed", async () => {
		const { lab, beta, operators, restored } = await lost();
		const before = await operators.missing(restored.info.uid);
		const { id } = await lab.run(restored.write(thing("a")));
		await lab.pass(60_000);
		const again = await restore(lab, restored);
		const uid = again.info.uid;
		const now = await operators.missing(uid);
		expect(now.filter(({ target }) => target?.name === "a")).toMatchObject(
			before.map(() => ({ targetUid: id?.uid })),
		);
		for (const action of [Action.KEEP, Action.CASCADE, Action.UNSET]) {
			expect(await operators.settle(uid, action, before)).toEqual(before.map(() => "GONE"));
		}
		for (const [name, init] of Object.entries(fields)) {
			expect(await dataOf(beta, name)).toEqual(widget(name, init).data);
		}
		const stale = operators.settle(restored.info.uid, Action.UNSET, now);
		await expect(stale).rejects.toThrow(`[failed_precondition] deployment ${restored.info.uid}`);
	});

	it("are settled once by two operators at the same time", async () => {
		const { lab, operators, restored, beta } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		const { client } = operators;
		const request = { deploymentUid: uid, references: [...missing] };
		const both = Promise.all([
			client.settle({ ...request, action: Action.UNSET }),
			client.settle({ ...request, action: Action.UNSET }),
		]);
		const outcomes = (await lab.run(both)).map(({ results }) => results.map((it) => it.outcome));
		for (const each of outcomes.flat()) {
			expect([1, 2]).toContain(each);
		}
		expect(await dataOf(beta, "blocks")).toEqual(widget("blocks").data);
		expect(await operators.missing(uid)).toEqual([]);
	});

	it("are given up only if the deployment of the target can be reached, or is no more", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		restored.crash();
		const refused = expect.stringMatching(/^REFUSED: .*alpha in r1 can't be reached/);
		expect(await operators.settle(uid, Action.CASCADE, missing)).toEqual(
			missing.map(() => refused),
		);
		expect(await operators.settle(uid, Action.KEEP, missing)).toEqual(missing.map(() => "SETTLED"));
		lab.retire(restored);
		const place = { service: "alpha", region: "r1" };
		const { references } = await lab.run(operators.client.listMissing(place));
		expect(references).toHaveLength(3);
		const { results } = await lab.run(
			operators.client.settle({ ...place, action: Action.UNSET, references }),
		);
		expect(results.map(({ outcome }) => outcome)).toEqual([1, 1, 1]);
		expect(await dataOf(beta, "blocks")).toEqual(widget("blocks").data);
	});

	it("of resources that a caller may not read are counted, and can't be settled", async () => {
		const { lab, beta, operators, restored } = await lost();
		const uid = restored.info.uid;
		const missing = await operators.missing(uid);
		const limited = operatorsOf(lab, beta, { caller: readerOf("blocks") });
		const page = await lab.run(limited.client.listMissing({ deploymentUid: uid }));
		expect(page).toMatchObject({ hidden: 2n, total: 3n, references: [{ path: "needs" }] });
		expect(await limited.settle(uid, Action.UNSET, missing)).toEqual(
			missing.map(({ holder }) => (holder?.name === "blocks" ? "SETTLED" : "GONE")),
		);
		expect(await dataOf(beta, "cascades")).toEqual(widget("cascades", fields.cascades).data);
	});

	it("are refused with what is wrong with the request", async () => {
		const { lab, operators, restored } = await lost();
		const uid = restored.info.uid;
		const { client } = operators;
		const [first] = await operators.missing(uid);
		const wrong: Readonly<Record<string, Promise<unknown>>> = {
			"invalid_argument] action is required": client.settle({ deploymentUid: uid }),
			"not_found] deployment nobody is not registered": client.listMissing({
				deploymentUid: "nobody",
			}),
			"invalid_argument] deployment_uid or service is required": client.listMissing({}),
			"invalid_argument] page_size: at most 1000": client.listMissing({
				deploymentUid: uid,
				pageSize: 1001,
			}),
			"failed_precondition] alpha in region": client.listMissing({
				service: "alpha",
				region: "r1",
			}),
			"invalid_argument] reference.holder and holder_uid are required": client.settle({
				deploymentUid: uid,
				action: Action.KEEP,
				references: [{ path: first?.path ?? "" }],
			}),
		};
		for (const [message, call] of Object.entries(wrong)) {
			await expect(lab.run(call)).rejects.toThrow(message);
		}
	});
});

/** Widgets that the thing `a` owns, and the thing `b` some of them; a restore has lost `a`. */
async function lostOwner() {
	const { lab, alpha, beta } = await startBoth();
	const a = await lab.run(alpha.write(thing("a")));
	const b = await lab.run(alpha.write(thing("b")));
	const owner = ({ id }: Resource, flags = {}) => {
		const { type, tenancy, name = "", uid = "" } = id ?? {};
		const init = { name, uid, region: "r1", ...flags };
		return create(OwnerReferenceSchema, {
			...init,
			...(type && { type }),
			...(tenancy && { tenancy }),
		});
	};
	const owners = {
		alone: [owner(a)],
		both: [owner(a), owner(b)],
		outlives: [owner(a, { unsetOnDelete: true })],
	};
	for (const [name, ownerReferences] of Object.entries(owners)) {
		await lab.run(beta.write({ ...widget(name), ownerReferences }));
	}
	await lab.pass(5_000);
	const restored = await restore(lab, alpha, [b]);
	const operators = operatorsOf(lab, beta);
	const read = (name: string) => beta.read(beta.id(Widget, name));
	return { lab, restored, operators, read, uid: restored.info.uid, aUid: a.id?.uid ?? "" };
}

describe("owners that a restore has lost", () => {
	it("are listed with what their deletion would have done, and counted", async () => {
		const { lab, operators, uid, aUid } = await lostOwner();
		const missing = await operators.missing(uid);
		const byName = missing.toSorted((x, y) =>
			(x.holder?.name ?? "") < (y.holder?.name ?? "") ? -1 : 1,
		);
		const { CASCADE, UNSET } = OnDelete;
		expect(byName).toMatchObject(
			Object.entries({ alone: CASCADE, both: UNSET, outlives: UNSET }).map(([name, rule]) => ({
				...{ holder: { name }, isOwner: true, path: "owner_references", rule },
				...{ target: { name: "a" }, targetUid: aUid },
			})),
		);
		const { deployments } = await lab.run(operators.client.listDeployments({}));
		expect(deployments[0]).toMatchObject({ name: "alpha", missing: 3n });
	});

	it("are removed, or their resources deleted, as operators decide", async () => {
		const { operators, read, uid } = await lostOwner();
		const missing = await operators.missing(uid);
		const of = (name: string) => missing.filter(({ holder }) => holder?.name === name);
		expect(await operators.settle(uid, Action.CASCADE, of("alone"))).toEqual(["SETTLED"]);
		expect(await read("alone")).toBeUndefined();
		const others = [...of("both"), ...of("outlives")];
		expect(await operators.settle(uid, Action.UNSET, others)).toEqual(["SETTLED", "SETTLED"]);
		expect((await read("both"))?.ownerReferences).toMatchObject([{ name: "b" }]);
		expect((await read("outlives"))?.ownerReferences).toEqual([]);
		expect(await operators.missing(uid)).toEqual([]);
		expect(await operators.settle(uid, Action.CASCADE, missing)).toEqual(missing.map(() => "GONE"));
		expect(await read("both")).toBeDefined();
	});

	it("are kept, and no longer reported", async () => {
		const { lab, operators, read, uid } = await lostOwner();
		const missing = await operators.missing(uid);
		const reported = async () =>
			(await read("alone"))?.status.references?.conditions.map(({ type, state }) => [type, state]);
		expect(await reported()).toEqual([["OwnersKnown", Condition_State.FALSE]]);
		expect(await operators.settle(uid, Action.KEEP, missing)).toEqual(missing.map(() => "SETTLED"));
		await lab.pass(60_000);
		expect(await reported()).toEqual([["OwnersKnown", Condition_State.TRUE]]);
		expect(await operators.missing(uid)).toMatchObject(missing.map(() => ({ isKept: true })));
	});

	it("that their deployment has deleted since are released by their rules", async () => {
		const { lab, restored, operators, read, uid } = await lostOwner();
		await lab.run(restored.delete(restored.id(Thing, "b")));
		await lab.pass(300_000);
		expect((await read("both"))?.ownerReferences).toMatchObject([{ name: "a" }]);
		expect(await restored.read(restored.id(Thing, "b"))).toBeUndefined();
		expect(await operators.missing(uid)).toHaveLength(3);
	});
});
