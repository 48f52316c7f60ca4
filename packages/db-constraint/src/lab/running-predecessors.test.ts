import { create } from "@bufbuild/protobuf";
import { type ID, OwnerReferenceSchema } from "@plinth/proto";
import { newUlid, referenceTo } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { SubscribedDeletingHandler } from "../controller/subscribed-deleting-handler.ts";
import { establishWithSuccessor, reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

const never = new AbortController().signal;

const needs = referenceTo({ type: Thing.type, name: "a" });

/** `w` of beta references `a` of alpha. */
async function referenced() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	const target = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const user = await lab.run(beta.write(make(Widget, "w", create(WidgetSchema, { needs }))));
	await lab.pass(1_000);
	return { lab, alpha, beta, a: alpha.id(Thing, "a"), target, user };
}

/** Establishes the references of a successor. */
async function settle(lab: Lab, { current, info }: LabDeployment) {
	await lab.run(reestablishOwnReferences(current.constraints.context, never));
	Object.assign(info, { established: true });
}

/** Runs with these known deployments alone, as servers see them that lag behind the registry. */
async function knowing<T>(lab: Lab, known: readonly LabDeployment[], run: () => Promise<T>) {
	const all = new Map(lab.deployments);
	lab.deployments.clear();
	for (const each of known) {
		lab.deployments.set(each.spec.name, each);
	}
	try {
		return await run();
	} finally {
		lab.deployments.clear();
		for (const [name, each] of all) {
			lab.deployments.set(name, each);
		}
	}
}

/** Starts a predecessor again, beside its successor. */
async function startAgain(lab: Lab, before: LabDeployment) {
	lab.deployments.set(`${before.spec.name}-before`, before);
	await lab.run(before.start());
}

/** `o` of beta, with an owner. */
function ownedBy({ type, name }: ID, uid = "") {
	const owned = make(Widget, "o", create(WidgetSchema));
	const owner = { ...(type && { type }), name, uid, region: "r1" };
	owned.ownerReferences = [create(OwnerReferenceSchema, owner)];
	return owned;
}

describe("a deployment that still runs although another one has taken over", () => {
	it("establishes no references", async () => {
		const { lab, alpha, beta, a, user } = await referenced();
		await settle(lab, await lab.succeed(beta, [user]));
		await startAgain(lab, beta);
		const late = make(Widget, "late", create(WidgetSchema, { needs }));
		await expect(lab.run(beta.write(late))).rejects.toThrow(`${beta.info.uid} was taken over by`);
		expect(await beta.read(beta.id(Widget, "late"))).toBeUndefined();
		expect((await alpha.shadow(a))?.sources).toHaveLength(2);
	});

	it("establishes none with a server that lags, once its successor was relied on", async () => {
		const { lab, alpha, beta, a, user } = await referenced();
		const after = await lab.succeed(beta, [user]);
		await settle(lab, after);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by beta.Widget");
		await knowing(lab, [alpha, beta], async () => {
			await lab.run(beta.start());
			const late = make(Widget, "late", create(WidgetSchema, { needs }));
			await expect(lab.run(beta.write(late))).rejects.toThrow(`taken over by ${after.info.uid}`);
		});
		await lab.run(after.delete(after.id(Widget, "w")));
		await lab.run(alpha.delete(a));
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("gets no references of a server that lags, once another one has reported to the successor", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		await lab.run(beta.delete(beta.id(Widget, "w")));
		const after = await lab.succeed(alpha, [target]);
		await settle(lab, after);
		await lab.run(establishWithSuccessor(beta.current.constraints.context, after.info, never));
		await knowing(lab, [alpha, beta], async () => {
			await lab.run(alpha.start());
			const late = make(Widget, "late", create(WidgetSchema, { needs }));
			await expect(lab.run(beta.write(late))).rejects.toThrow("this server does not know yet");
		});
		await lab.run(after.delete(a));
		expect(await after.read(a)).toBeUndefined();
		expect(await beta.read(beta.id(Widget, "late"))).toBeUndefined();
	});

	it("gets none, not even if that server has not seen either that its deployment knows the successor", async () => {
		const { lab, alpha, beta, a, target } = await referenced();
		const { context } = beta.current.constraints;
		await lab.run(beta.delete(beta.id(Widget, "w")));
		const after = await lab.succeed(alpha, [target]);
		await settle(lab, after);
		await lab.run(establishWithSuccessor(context, after.info, never));
		context.dropped.successorOf = () => undefined;
		await knowing(lab, [alpha, beta], async () => {
			await lab.run(alpha.start());
			const late = beta.write(make(Widget, "late", create(WidgetSchema, { needs })));
			await expect(lab.run(late)).rejects.toThrow("references changed at the same time");
		});
		expect((await alpha.shadow(a))?.sources).toHaveLength(1);
		expect(await beta.read(beta.id(Widget, "late"))).toBeUndefined();
	});

	it("is not queried by a server that lags, once its successor was relied on", async () => {
		const { lab, alpha, beta, a } = await referenced();
		const { dropped } = alpha.current.constraints.context;
		await lab.run(dropped.succeed(beta.info.uid, "01SUCCESSOR"));
		await lab.pass(1_000);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow(
			"was taken over by 01SUCCESSOR, which this server does not know yet",
		);
	});

	it("does not make an UNSET reference to it look like one to a deleted deployment", async () => {
		const { lab, alpha, beta, target } = await referenced();
		const likes = create(WidgetSchema, { likes: [needs] });
		await lab.run(beta.write(make(Widget, "v", likes)));
		await lab.pass(1_000);
		const after = await lab.succeed(alpha, [target]);
		await settle(lab, after);
		const { context } = beta.current.constraints;
		await lab.run(context.dropped.succeed(alpha.info.uid, after.info.uid));
		expect(context.dropped.has(alpha.info.uid)).toBe(false);
		await knowing(lab, [beta], async () => {
			lab.changed();
			await lab.pass(120_000);
		});
		expect((await beta.shadow(beta.id(Widget, "v")))?.outgoing).toHaveLength(1);
	});

	it.each([
		{ server: "that has seen the record", isSeen: true },
		{ server: "that has not", isSeen: false },
	])(
		"has no deletion applied once its successor was relied on, by a server $server",
		async ({ isSeen }) => {
			const { lab, alpha, beta, a, target } = await referenced();
			const { context, store } = beta.current.constraints;
			await lab.run(beta.write(make(Widget, "v", create(WidgetSchema, { likes: [needs] }))));
			await lab.run(beta.write(make(Widget, "c", create(WidgetSchema, { belongsTo: needs }))));
			await lab.pass(1_000);
			await lab.run(context.dropped.succeed(alpha.info.uid, "01SUCCESSOR"));
			await lab.pass(1_000);
			if (!isSeen) {
				context.dropped.isRefused = () => false;
			}
			const deletion = {
				deploymentUid: alpha.info.uid,
				target: lab.keyOf(alpha, a),
				targetUid: target.id?.uid ?? "",
			};
			const handled = lab.run(new SubscribedDeletingHandler(context, store).handle(deletion));
			expect((await handled).requeueAfterMs !== undefined).toBe(!isSeen);
			expect((await beta.shadow(beta.id(Widget, "v")))?.outgoing).toHaveLength(1);
			expect(await beta.read(beta.id(Widget, "c"))).toBeDefined();
		},
	);

	it.each([
		{ server: "that has seen the record", isSeen: true },
		{ server: "that has not", isSeen: false },
	])(
		"does not decide about owners once its successor was relied on, by a server $server",
		async ({ isSeen }) => {
			const { lab, alpha, beta } = await referenced();
			const { dropped } = beta.current.constraints.context;
			await lab.run(beta.write(ownedBy(alpha.id(Thing, "gone"), newUlid(lab.runtime))));
			await lab.pass(20_000);
			const o = beta.id(Widget, "o");
			expect((await beta.shadow(o))?.metaOwners).toMatchObject([{ notValidAnswers: 2 }]);
			await lab.run(dropped.succeed(alpha.info.uid, "01SUCCESSOR"));
			if (!isSeen) {
				dropped.isRefused = () => false;
			}
			await lab.pass(120_000);
			expect((await beta.read(o))?.ownerReferences).toHaveLength(1);
		},
	);

	it.each([
		{ server: "that has seen the record", isSeen: true },
		{ server: "that has not", isSeen: false },
	])(
		"does not make owners valid once its successor was relied on, by a server $server",
		async ({ isSeen }) => {
			const { lab, alpha, beta, a, target } = await referenced();
			const { dropped } = beta.current.constraints.context;
			await lab.run(dropped.succeed(alpha.info.uid, "01SUCCESSOR"));
			if (!isSeen) {
				dropped.isRefused = () => false;
			}
			await lab.run(beta.write(ownedBy(a, target.id?.uid)));
			await lab.pass(10_000);
			const { metaOwners } = (await beta.shadow(beta.id(Widget, "o"))) ?? {};
			expect(metaOwners).toMatchObject([{ valid: false, deploymentUid: "" }]);
		},
	);
});
