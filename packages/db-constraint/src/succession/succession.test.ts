import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { DeploymentRecordSchema, Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid, referenceTo } from "@plinth/resource";
import {
	createMemoryBackend,
	decorateBackend,
	type StorageBackend,
	wildcard,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { Lab, LabDeployment, make, type TransportDecorator } from "../lab/lab.fixture.ts";
import { hooked, thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";
import { giveUpUid } from "../registry/own-identity.ts";
import { shadowName } from "../shadow/shadow.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { readDeploymentRecord, updateDeploymentRecord } from "./deployment-record.ts";
import { establishWithSuccessor, reestablishOwnReferences } from "./succession.ts";

const anywhere = { partition: wildcard, namespace: wildcard };

const never = new AbortController().signal;

/** `w` of beta references `a` of alpha. */
async function referenced(
	decorate = (backend: StorageBackend) => backend,
	decorateTransport?: TransportDecorator,
) {
	const lab = new Lab(1, {}, decorateTransport);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{
			name: "beta",
			service: "beta",
			region: "r1",
			types: [Widget],
			foreignTypes: [Thing],
		},
		decorate,
	);
	const a = alpha.id(Thing, "a");
	const w = beta.id(Widget, "w");
	const needs = referenceTo({ type: Thing.type, name: "a" });
	const target = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const user = await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs }))));
	await lab.pass(1_000);
	return { lab, alpha, beta, a, w, target, user };
}

function establishOwn({ current }: LabDeployment) {
	const { context } = current.constraints;
	return reestablishOwnReferences(context, never);
}

describe("a deployment whose storage was restored", () => {
	it("refuses deletions until all deployments have re-established their references", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		const after = await lab.succeed(alpha, [target]);
		await lab.run(establishOwn(after));
		await expect(lab.run(after.delete(a))).rejects.toThrow(
			"this deployment has taken over from another one, and waits for beta in r1",
		);
		const { context } = beta.current.constraints;
		await lab.run(establishWithSuccessor(context, after.info, never));
		await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		expect((await after.shadow(a))?.sources).toMatchObject([{ deployment: { service: "beta" } }]);
	});

	it.each(["before", "while"])(
		"does not take its references for established if another server gives up the uid %s they are",
		async (when) => {
			const { lab, beta, user } = await referenced();
			const after = await lab.succeed(beta, [user]);
			const { backend, info } = after;
			const giveUp = () => giveUpUid({ backend, runtime: lab.runtime }, info.uid);
			const work =
				when === "before" ? giveUp().then(() => establishOwn(after)) : establishOwn(after);
			const [isOwn] = await lab.run(Promise.all([work, when === "while" && giveUp()]));
			expect(isOwn).toBe(false);
			expect(await readDeploymentRecord(backend)).toMatchObject({ uid: "", established: false });
		},
	);

	it("does not take what the next uid has established for its own", async () => {
		const { lab, beta, user } = await referenced();
		const after = await lab.succeed(beta, [user]);
		const { backend, info } = after;
		const { runtime } = lab;
		await lab.run(giveUpUid({ backend, runtime }, info.uid));
		await lab.run(
			updateDeploymentRecord(backend, runtime, (now) => ({
				...now,
				uid: "next",
				established: true,
			})),
		);
		expect(await lab.run(establishOwn(after))).toBe(false);
	});

	it("does not count a report to a uid that another server has given up", async () => {
		const { lab, alpha, beta, target } = await referenced();
		const after = await lab.succeed(alpha, [target]);
		await lab.run(establishOwn(after));
		const { backend, info } = after;
		await lab.run(giveUpUid({ backend, runtime: lab.runtime }, info.uid));
		const { context } = beta.current.constraints;
		await expect(lab.run(establishWithSuccessor(context, info, never))).rejects.toThrow(
			`deployment ${info.uid} was deleted`,
		);
		expect((await readDeploymentRecord(backend))?.establishedBy).toEqual([]);
	});

	it.each(["before", "while"])(
		"is told nothing if another deployment claims its predecessor %s it would be, as that one may be deleted",
		async (when) => {
			let isStored = true;
			const { lab, alpha, beta, a, target } = await referenced((backend) =>
				decorateBackend(backend, {
					async list(query, options) {
						if (!isStored && query.namePrefix === "s-") {
							isStored = true;
							lab.deployments.set("claimant", claimant);
						}
						return backend.list(query, options);
					},
				}),
			);
			const spec = { ...alpha.spec, name: "claimant", uid: newUlid(lab.runtime) };
			const claimant = new LabDeployment(lab, spec, alpha.backend, {});
			Object.assign(claimant.info, { predecessorUid: alpha.info.uid });
			if (when === "before") {
				lab.deployments.set("claimant", claimant);
			}
			isStored = when === "before";
			const after = await lab.succeed(alpha, [target]);
			await lab.run(establishOwn(after));
			await lab.pass(60_000);
			expect([...lab.deployments.keys()]).toContain("claimant");
			expect((await readDeploymentRecord(after.backend))?.establishedBy).toEqual([]);

			lab.deployments.delete("claimant");
			await expect(lab.run(after.delete(a))).rejects.toThrow("waits for beta in r1");
			await lab.pass(60_000);
			expect((await readDeploymentRecord(after.backend))?.establishedBy).toEqual([beta.info.uid]);
			await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		},
	);

	it("is told nothing while it is recovering, as it may not name all that it has taken over yet", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		alpha.crash();
		const backend = createMemoryBackend({ runtime: lab.runtime });
		await backend.commit([{ op: "put", resource: target, expectedVersion: "" }]);
		const [uid, predecessorUid] = [newUlid(lab.runtime), newUlid(lab.runtime)];
		const change = () => ({ ...create(DeploymentRecordSchema), uid, predecessorUid });
		await updateDeploymentRecord(backend, lab.runtime, change);
		const after = new LabDeployment(lab, { ...alpha.spec, uid }, backend, {});
		Object.assign(after.info, { predecessorUid, recovering: true });
		lab.deployments.set("restored", after);
		await lab.run(after.start());
		await lab.pass(60_000);
		expect((await readDeploymentRecord(backend))?.establishedBy).toEqual([]);

		Object.assign(after.info, { otherPredecessorUids: [alpha.info.uid], recovering: false });
		lab.changed();
		await lab.pass(60_000);
		expect((await readDeploymentRecord(backend))?.establishedBy).toEqual([beta.info.uid]);
		await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("waits for disabled deployments too, which may have references", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		const after = await lab.succeed(alpha, [target]);
		await lab.run(establishOwn(after));
		Object.assign(beta.info, { disabled: true });
		await expect(lab.run(after.delete(a))).rejects.toThrow("waits for beta in r1");
	});

	it("does not accept delayed writes that were established with its predecessor", async () => {
		const { promise: applied, resolve: apply } = Promise.withResolvers<void>();
		const { lab, alpha, beta, a, w, target } = await referenced((backend) =>
			decorateBackend(backend, {
				async commit(mutations, options) {
					if (mutations.some((each) => each.op === "put" && each.resource.id?.name === "late")) {
						await applied;
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		await lab.run(beta.delete(w));
		await lab.pass(5_000);
		const needs = referenceTo({ type: Thing.type, name: "a" });
		const late = beta.write(make(Widget, "late", create(WidgetSchema, { needs })));
		await lab.pass(1_000);
		expect((await alpha.shadow(a))?.sources).toMatchObject([{ tentative: true }]);
		const after = await lab.succeed(alpha, [target]);
		await lab.run(establishOwn(after));
		const { context } = beta.current.constraints;
		await lab.run(establishWithSuccessor(context, after.info, never));
		apply();
		await lab.run(late);
		await expect(lab.run(after.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
	});

	it("does not commit what another server has established under a uid that was given up since", async () => {
		let response = Promise.resolve();
		const { lab, alpha, beta, a, w } = await referenced(undefined, (transport) => ({
			stream: (...args) => transport.stream(...args),
			async unary(method, ...args) {
				const received = await transport.unary(method, ...args);
				if (method.name === "EstablishReferences") {
					await response;
				}
				return received;
			},
		}));
		const { backend } = beta;
		const { runtime } = lab;
		const record = (uid: string) =>
			lab.run(updateDeploymentRecord(backend, runtime, (now) => ({ ...now, uid })));
		await record(beta.info.uid);
		await lab.run(beta.delete(w));
		await lab.pass(5_000);
		const { promise: received, resolve: receive } = Promise.withResolvers<void>();
		response = received;
		const needs = referenceTo({ type: Thing.type, name: "a" });
		const late = beta.write(make(Widget, "late", create(WidgetSchema, { needs })));
		const refused = expect(late).rejects.toThrow(`${beta.info.uid} has been given up`);
		await lab.pass(1_000);
		expect((await alpha.shadow(a))?.sources).toMatchObject([{ tentative: true }]);

		// It can't reach the meta deployment any longer.
		const known = [alpha.info, beta.info];
		Object.assign(beta.current.constraints.context.environment, {
			successorOf: () => undefined,
			deployments: () => known,
			byUid: (uid: string) => known.find((each) => each.uid === uid),
		});
		// Its Deployment is deleted, so that it holds nothing. Another server starts over the same storage.
		lab.deployments.delete("beta");
		lab.deleted.add(beta.info.uid);
		lab.changed();
		await lab.run(alpha.delete(a));
		await lab.run(giveUpUid({ backend, runtime }, beta.info.uid));
		const uid = newUlid(runtime);
		await record(uid);
		const after = new LabDeployment(lab, { ...beta.spec, uid }, backend, {});
		Object.assign(after.info, { predecessorUid: beta.info.uid, established: false });
		lab.deployments.set("beta", after);
		await lab.run(after.start());
		expect(await lab.run(establishOwn(after))).toBe(true);
		await lab.pass(1_000);

		receive();
		await lab.run(refused);
		expect(await after.read(after.id(Widget, "late"))).toBeUndefined();
	});

	it("keeps the old sources until it has established its own, and is then responsible for them", async () => {
		const { lab, alpha, beta, a, w, user } = await referenced();
		const after = await lab.succeed(beta, [user]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow(
			"its successor has not established yet what it references",
		);
		await lab.run(establishOwn(after));
		Object.assign(after.info, { established: true });
		expect((await alpha.shadow(a))?.sources).toHaveLength(2);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		const { context } = alpha.current.constraints;
		await lab.run(establishWithSuccessor(context, after.info, never));
		await lab.run(after.delete(w));
		await lab.run(alpha.delete(a));
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("establishes its references although its predecessor was checking deletions", async () => {
		const { lab, alpha, beta, w, user } = await referenced();
		const after = await lab.succeed(beta, [user]);
		const { context } = after.current.constraints;
		const lifecycle = Lifecycle.CHECKING;
		await lab.run(
			updateShadow(context, shadowName(lab.keyOf(after, w)), ({ shadow }) => ({
				...shadow,
				lifecycle,
			})),
		);
		await lab.run(establishOwn(after));
		expect(await after.shadow(w)).toMatchObject({
			lifecycle: Lifecycle.ACTIVE,
			outgoing: [{ deploymentUid: alpha.info.uid }],
		});
	});

	it("establishes as many references of one resource as its shadow can hold", async () => {
		let isSilent = false;
		const confirmations = hooked(async (method) => {
			if (isSilent && method === "ConfirmBlockades") {
				throw new ConnectError("the response is late", Code.Unavailable);
			}
		});
		const limited = ({ runtime }: Lab) =>
			createMemoryBackend({ runtime, limits: { resourceBytes: 40_000 } });
		const { lab, alpha, beta } = await twoDeployments(confirmations, limited);
		const names = Array.from({ length: 270 }, (_, at) => `t${at}`);
		await lab.run(Promise.all(names.map((name) => alpha.write(thing(name)))));
		const likes = names.map((name) => to(name));
		for (let count = 30; count <= likes.length; count += 30) {
			await lab.run(beta.write(widget("w", { likes: likes.slice(0, count) })));
			await lab.pass(2_000);
		}
		const stored = await Promise.all(
			[Widget.type, ResourceShadow.type].map((type) =>
				beta.backend.list({ type, tenancy: anywhere, namePrefix: "" }),
			),
		);
		const restored = stored
			.flatMap(({ resources }) => [...resources])
			.filter(({ id }) => id?.type?.kind === Widget.type.kind || id?.name.startsWith("s-"));
		isSilent = true;
		const after = await lab.succeed(beta, restored, limited(lab));
		expect(await lab.run(establishOwn(after))).toBe(true);
		const shadow = await after.shadow(after.id(Widget, "w"));
		expect(shadow?.outgoing).toHaveLength(likes.length);

		await lab.pass(120_000);
		const sources = await Promise.all(
			names.map(async (name) => (await alpha.shadow(alpha.id(Thing, name)))?.sources),
		);
		const own = sources.map((all) => all?.find((each) => each.deployment?.uid === after.info.uid));
		expect(own).toMatchObject(names.map(() => ({ tentative: false })));
	});

	it.each([1, 2, 3, 4, 5, 6])(
		"gets all references to what it has, though the holder has many others without targets (seed %s)",
		async (seed) => {
			const lab = new Lab(seed);
			const things = { service: "alpha", types: [Thing] };
			const alpha = await lab.add({ ...things, name: "alpha", region: "r1" });
			const far = await lab.add({ ...things, name: "far", region: "r2" });
			const beta = await lab.add({
				...{ name: "beta", service: "beta", region: "r1" },
				...{ types: [withRules(Widget, { likes: OnDelete.BLOCK })], foreignTypes: [Thing] },
			});
			const lost = Array.from({ length: 60 }, (_, at) => `a${at}`);
			const kept = ["f0", "f1", "f2"];
			await lab.run(Promise.all(lost.map((name) => alpha.write(thing(name)))));
			const stored = await lab.run(Promise.all(kept.map((name) => far.write(thing(name)))));
			const likes = [...lost.map((name) => to(name)), ...kept.map((name) => to(name, "r2"))];
			await lab.run(beta.write(widget("w", { likes })));
			await lab.pass(3_000);
			await restore(lab, alpha);
			const outgoing = async () => (await beta.shadow(beta.id(Widget, "w")))?.outgoing ?? [];
			const lacking = (await outgoing()).filter(({ targetUid }) => targetUid === "");
			expect(lacking).toHaveLength(lost.length);

			const after = await lab.succeed(far, stored);
			await lab.run(establishOwn(after));
			const { context } = beta.current.constraints;
			await lab.run(establishWithSuccessor(context, after.info, never));
			const held = (await outgoing()).filter(({ target }) => target?.region === "r2");
			expect(held).toMatchObject(kept.map(() => ({ deploymentUid: after.info.uid })));
			for (const name of kept) {
				const refused = lab.run(after.delete(after.id(Thing, name)));
				await expect(refused).rejects.toThrow("it is referenced by beta.Widget");
			}
		},
	);

	it("reports references to deleted targets", async () => {
		const { lab, alpha, beta, w, user, a } = await referenced();
		beta.crash();
		await lab.run(beta.start());
		await lab.run(beta.delete(w));
		await lab.run(alpha.delete(a));
		const after = await lab.succeed(beta, [user]);
		await lab.run(establishOwn(after));
		expect((await after.shadow(w))?.outgoing).toMatchObject([{ targetUid: "" }]);
		expect((await after.read(w))?.status.references?.conditions).toMatchObject([
			{ type: "ReferencesResolved", state: 2 },
		]);
	});
});
