import { create, isMessage } from "@bufbuild/protobuf";
import { Code, type Transport } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import { EstablishReferencesRequestSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	allowed,
	CallerToken,
	idOf,
	isMarkedForDeletion,
	Namespace,
	newUlid,
	tenancyOf,
} from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { routeTo } from "../protocol/holder-query.ts";
import { deployedOf, shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, type TransportDecorator } from "./lab.fixture.ts";
import { thing, to, twoDeployments, widget } from "./things.fixture.ts";

/** Replaces a deployment by a successor that has only these resources, and with which all establish their references. */
async function restored(lab: Lab, before: LabDeployment, resources: readonly Resource[]) {
	const after = await lab.succeed(before, resources);
	await takeOver(lab, after);
	return after;
}

async function takeOver(lab: Lab, after: LabDeployment) {
	const { context } = after.current.constraints;
	await lab.run(reestablishOwnReferences(context, new AbortController().signal));
	Object.assign(after.info, { established: true });
	lab.changed();
	await lab.pass(1_000);
}

/** A resource and its shadow, as they are stored. */
async function backupOf(deployment: LabDeployment, id: ID): Promise<readonly Resource[]> {
	const { backend, lab } = deployment;
	const shadow = await readShadow(backend, shadowName(lab.keyOf(deployment, id)));
	return [await backend.lookup(id), shadow?.resource].flatMap((each) => each ?? []);
}

/** Marks the namespace of all resources for deletion, and returns it. */
async function markNamespace({ backend, lab }: LabDeployment): Promise<Resource> {
	const id = { ...idOf(Namespace, "default"), tenancy: tenancyOf({ partition: "default" }) };
	const stored = await backend.lookup(id);
	if (stored === undefined) {
		throw new Error("there is no namespace");
	}
	const deletionTimestamp = new Date(0).toISOString();
	const metadata = { ...stored.metadata, deletionTimestamp, finalizers: "test/keep" };
	const marked = { ...stored, metadata, generation: newUlid(lab.runtime) };
	await backend.commit([{ op: "put", resource: marked, expectedVersion: stored.version }]);
	expect(isMarkedForDeletion(marked)).toBe(true);
	return marked;
}

/** Requests as servers receive them that don't know `held_uid`. */
const withoutHeldUids: TransportDecorator = (transport): Transport => ({
	stream: (...args) => transport.stream(...args),
	unary(method, signal, timeoutMs, header, input, values) {
		const request = create(method.input, input);
		if (isMessage(request, EstablishReferencesRequestSchema)) {
			for (const target of request.targets) {
				target.heldUid = "";
			}
			return transport.unary(method, signal, timeoutMs, header, request, values);
		}
		return transport.unary(method, signal, timeoutMs, header, input, values);
	},
});

describe("a deletion that a deployment announced before it was restored to an earlier state", () => {
	it("is refused if it arrives after the succession, and one of the successor is applied", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const a = alpha.id(Thing, "a");
		const target = await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("cascades", { belongsTo: to("a") })));
		await lab.run(beta.write(widget("unsets", { likes: [to("a")] })));
		await lab.pass(1_000);
		const after = await restored(lab, alpha, [target]);

		const route = { from: deployedOf(alpha.info), toUid: beta.info.uid };
		const targetUid = target.id?.uid ?? "";
		const question = { target: lab.keyOf(alpha, a), targetUid, deleting: true };
		const late = lab.client(after, beta).checkReferences({ route, questions: [question] });
		await expect(lab.run(late)).rejects.toThrow("was taken over by");
		await lab.pass(60_000);
		expect(await beta.read(beta.id(Widget, "cascades"))).toBeDefined();
		expect((await beta.shadow(beta.id(Widget, "unsets")))?.outgoing).toMatchObject([{ targetUid }]);

		await lab.run(after.delete(a));
		await lab.pass(60_000);
		expect(await beta.read(beta.id(Widget, "cascades"))).toBeUndefined();
		expect((await beta.shadow(beta.id(Widget, "unsets")))?.outgoing ?? []).toEqual([]);
		expect(await after.read(a)).toBeUndefined();
	});

	it("is not applied if it waited during the succession", async () => {
		const lab = new Lab(1);
		const spec = { service: "alpha", types: [Thing] };
		const west = await lab.add({ ...spec, name: "west", region: "r1" });
		const east = await lab.add({ ...spec, name: "east", region: "r2" });
		const a = west.id(Thing, "a");
		const b = east.id(Thing, "b");
		const target = await lab.run(west.write(thing("a")));
		await lab.run(east.write(thing("b", { belongsTo: to("a", "r1") })));
		await lab.run(east.write(thing("blocks", { needs: to("b") })));
		await lab.pass(1_000);
		await lab.run(west.delete(a));
		await lab.pass(1_000);
		const after = await restored(lab, west, [target]);

		await lab.run(east.delete(east.id(Thing, "blocks")));
		await lab.pass(120_000);
		expect(await east.read(b)).toBeDefined();

		await lab.run(after.delete(a));
		await lab.pass(60_000);
		expect(await east.read(b)).toBeUndefined();
		expect(await after.read(a)).toBeUndefined();
	});
});

describe("references to what is being deleted are established again", () => {
	const a = idOf(Thing, "a");
	const w = idOf(Widget, "w");

	it("with the successor of a target's deployment that lacks them, though the namespace is marked", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const target = await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		const namespace = await markNamespace(alpha);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");

		const after = await restored(lab, alpha, [target, namespace]);
		const { uid } = after.info;
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ deploymentUid: uid }]);
		await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		await lab.run(beta.delete(w));
		await lab.run(after.delete(a));
		expect(await after.read(a)).toBeUndefined();
	});

	it("by the successor of the deployment that references a target in a marked namespace", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		await markNamespace(alpha);
		const after = await restored(lab, beta, await backupOf(beta, w));
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		await lab.run(after.delete(w));
		await lab.run(alpha.delete(a));
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("but not with another incarnation, which is reported as missing", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		const namespace = await markNamespace(alpha);
		const other = thing("a");
		const id = { ...lab.idOf(other), uid: newUlid(lab.runtime) };
		const after = await restored(lab, alpha, [{ ...other, id }, namespace]);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ targetUid: "" }]);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([
			{ type: "ReferencesResolved", state: 2 },
		]);
		await lab.run(after.delete(a));
		expect(await after.read(a)).toBeUndefined();
	});

	it.each([
		{ rule: "CASCADE", init: { belongsTo: to("a") } },
		{ rule: "UNSET", init: { likes: [to("a")] } },
	])("by a successor that has to apply $rule", async ({ init }) => {
		const { lab, alpha, beta } = await twoDeployments();
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", init)));
		await lab.pass(1_000);
		const backup = await backupOf(beta, w);
		beta.crash();
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("can't be queried");
		await lab.run(beta.start());
		await lab.run(alpha.delete(a));
		expect((await alpha.shadow(a))?.lifecycle).toBe(Lifecycle.DELETING);
		const after = await restored(lab, beta, backup);
		await lab.pass(120_000);
		expect((await after.shadow(w))?.outgoing ?? []).toEqual([]);
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("by a successor that has not released it, though its predecessor had", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		await lab.run(alpha.write(thing("a"), "test/keep"));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") })));
		await lab.pass(1_000);
		const backup = await backupOf(beta, w);
		await lab.run(alpha.delete(a));
		await lab.pass(60_000);
		expect(await beta.read(w)).toBeUndefined();
		expect((await alpha.shadow(a))?.sources).toEqual([]);

		const after = await restored(lab, beta, backup);
		expect((await alpha.shadow(a))?.lifecycle).toBe(Lifecycle.DELETING);
		await lab.pass(60_000);
		expect(await after.read(w)).toBeUndefined();
		expect((await alpha.shadow(a))?.sources).toEqual([]);
	});

	it("not by servers that don't know how: the others wait for an update of these", async () => {
		const { lab, alpha, beta } = await twoDeployments(withoutHeldUids);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		await markNamespace(alpha);
		const after = await lab.succeed(beta, await backupOf(beta, w));
		await expect(takeOver(lab, after)).rejects.toMatchObject({
			code: Code.Unavailable,
			message: expect.stringContaining("update alpha in r1"),
		});
		await expect(lab.run(alpha.delete(a))).rejects.toThrow(
			"its successor has not established yet what it references",
		);
	});

	it("on behalf of the deployment alone", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		alpha.crash();
		const user = {
			decideReference: () => allowed,
			mayRead: () => true,
			token: new CallerToken(""),
		};
		alpha.callers = { isOpen: true, authenticate: async () => user };
		await lab.run(alpha.start());
		const key = lab.keyOf(alpha, a);
		const request = {
			route: { from: deployedOf(beta.info), toUid: alpha.info.uid },
			targets: [{ key, rules: [], heldUid: "u" }],
			caller: { caller: { case: "user", value: { token: "" } } } as const,
		};
		await expect(
			lab.run(lab.client(beta, alpha).establishReferences(request)),
		).rejects.toMatchObject({ code: Code.InvalidArgument });
	});
});

describe("references to a service that is no longer imported", () => {
	const a = idOf(Thing, "a");
	const w = idOf(Widget, "w");

	/** `w` references `a` by BLOCK, and its deployment neither has its type nor imports that of `a` any longer. */
	async function withoutImport() {
		const { lab, alpha, beta } = await twoDeployments();
		const target = await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		beta.crash();
		Object.assign(beta.spec, { types: [], foreignTypes: [] });
		await lab.run(beta.start());
		await lab.pass(1_000);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		return { lab, alpha, beta, target };
	}

	it("are established with the successor of the target's deployment", async () => {
		const { lab, alpha, beta, target } = await withoutImport();
		const after = await restored(lab, alpha, [target]);
		const { uid } = after.info;
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ deploymentUid: uid }]);
		await lab.pass(5_000);
		expect((await after.shadow(a))?.sources).toMatchObject([{ tentative: false }]);
		await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		await lab.run(beta.delete(w));
		await lab.run(after.delete(a));
		expect(await after.read(a)).toBeUndefined();
	});

	it("are reported as missing if the successor has lost the target, until the import is back", async () => {
		const { lab, alpha, beta } = await withoutImport();
		const after = await restored(lab, alpha, []);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ targetUid: "" }]);
		expect((await beta.read(w))?.status.references?.conditions).toMatchObject([
			{ type: "ReferencesResolved", state: 2 },
		]);
		const again = await lab.run(after.write(thing("a")));
		beta.crash();
		Object.assign(beta.spec, { types: [Widget], foreignTypes: [Thing] });
		await lab.run(beta.start());
		await lab.pass(60_000);
		const targetUid = again.id?.uid;
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ targetUid }]);
	});

	it("are established with a later successor, and with no deployment that lacks their target", async () => {
		const { lab, alpha, beta, target } = await withoutImport();
		const gamma = await lab.add({ name: "gamma", service: "gamma", region: "r1", types: [Thing] });
		beta.crash();
		const second = await restored(lab, alpha, [target]);
		const third = await restored(lab, second, [target]);
		lab.deployments.delete(third.spec.name);
		await restored(lab, gamma, [{ ...target, id: { ...lab.idOf(target), uid: "other" } }]);
		await lab.run(beta.start());
		await lab.pass(5_000);
		const { uid: targetUid } = lab.idOf(target);
		const before = [{ targetUid, deploymentUid: alpha.info.uid }];
		expect((await beta.shadow(w))?.outgoing).toMatchObject(before);

		lab.deployments.set(third.spec.name, third);
		lab.changed();
		await lab.pass(5_000);
		const { uid: deploymentUid } = third.info;
		expect((await beta.shadow(w))?.outgoing).toMatchObject([{ targetUid, deploymentUid }]);
		await expect(lab.run(third.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("are established by the successor of their deployment", async () => {
		const { lab, alpha, beta } = await withoutImport();
		const backup = await backupOf(beta, w);
		await lab.run(beta.delete(w));
		const { context } = alpha.current.constraints;
		const route = routeTo(beta.current.constraints.context, alpha.info.uid);
		const target = lab.keyOf(alpha, a);
		context.hints.reported({ route, releases: [{ target, targetUid: "" }] }, false);
		await lab.pass(5_000);
		expect((await alpha.shadow(a))?.sources ?? []).toEqual([]);

		const after = await restored(lab, beta, backup);
		expect((await alpha.shadow(a))?.sources).toMatchObject([
			{ deployment: { uid: after.info.uid } },
		]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});
});

describe("a resource with many references", () => {
	it.each([
		{ types: "imports their types", kept: true },
		{ types: "does not import their types any longer", kept: false },
	])("establishes all with a successor that has lost most, if it $types", async ({ kept }) => {
		const { lab, alpha, beta } = await twoDeployments();
		const names = Array.from({ length: 80 }, (_, i) => `a-${i}`);
		const targets = await Promise.all(names.map((name) => lab.run(alpha.write(thing(name)))));
		const likes = names.map((name) => to(name));
		await lab.run(beta.write(widget("w", { needs: to("a-40"), likes })));
		await lab.pass(5_000);
		if (!kept) {
			beta.crash();
			Object.assign(beta.spec, { types: [], foreignTypes: [] });
			await lab.run(beta.start());
		}
		const left = targets.slice(-2);
		const after = await restored(lab, alpha, left);
		await lab.pass(5_000);
		const outgoing = (await beta.shadow(idOf(Widget, "w")))?.outgoing ?? [];
		expect(outgoing).toHaveLength(81);
		const found = outgoing.filter(({ targetUid }) => targetUid !== "");
		const { uid: deploymentUid } = after.info;
		expect(found).toMatchObject(
			left.map(({ id }) => ({ target: { name: id?.name }, targetUid: id?.uid, deploymentUid })),
		);
	});
});
