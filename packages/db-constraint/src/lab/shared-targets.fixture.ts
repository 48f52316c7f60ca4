import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid, referenceTo } from "@plinth/resource";
import { expect } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { SubscribedDeletingHandler } from "../controller/subscribed-deleting-handler.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { anyone } from "./anyone.fixture.ts";
import { Lab, type LabDeployment } from "./lab.fixture.ts";
import { thing, widget } from "./things.fixture.ts";

/** Rules of fields of the widget. */
export type Rules = Parameters<typeof withRules>[1];
/** The fields of the widget. */
export type Init = Parameters<typeof widget>[1];

/** `alpha` has the thing `a`, and the widget `w` of beta references it. */
export async function referenced(init: Init, rules: Rules = {}) {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const types = [withRules(Widget, rules)];
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types, foreignTypes: [Thing] },
	});
	const [a, w] = [alpha.id(Thing, "a"), beta.id(Widget, "w")];
	await lab.run(alpha.write(thing("a")));
	await lab.run(beta.write(widget("w", init)));
	await lab.pass(3_000);
	return {
		...{ lab, alpha, beta, a, w },
		/** What the shadow of the widget records, by field. */
		recorded: async () =>
			new Map(((await beta.shadow(w))?.outgoing ?? []).map((each) => [each.path, each])),
		async restartBeta(next = types): Promise<void> {
			beta.crash();
			Object.assign(beta.spec, { types: next });
			await lab.run(beta.start());
		},
	};
}

/** A world of these. */
export type World = Awaited<ReturnType<typeof referenced>>;

/** A restore of alpha has lost `a`, and operators keep the references to it. */
export async function keepLost({ lab, alpha, beta }: World): Promise<LabDeployment> {
	const restored = await restore(lab, alpha);
	const { uid } = restored.info;
	const operators = operatorsOf(lab, beta);
	const missing = await operators.missing(uid);
	expect(missing).not.toEqual([]);
	await operators.settle(uid, Action.KEEP, missing);
	return restored;
}

/** Like `keepLost`. Then `a` is created again. */
export async function lostAndKept(world: World): Promise<LabDeployment> {
	const restored = await keepLost(world);
	await world.lab.run(restored.write(thing("a")));
	return restored;
}

/** A next schema of beta, whose pass can begin. */
export function nextSchema({ beta }: World, rules: Rules) {
	const types = [withRules(Widget, rules)];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...beta.current.constraints.context, descriptor });
	return { types, descriptor, pass };
}

/** Deletes `a`, which only begins: beta does not release it. */
export async function beginDeletion({ lab, a }: World, alpha: LabDeployment): Promise<void> {
	await lab.run(alpha.delete(a));
	expect((await alpha.shadow(a))?.lifecycle).toBe(Lifecycle.DELETING);
}

/** Registers another deployment with a thing `a` for the same service and region, which is found first from then on. */
export async function addSecond({ lab, alpha }: World): Promise<LabDeployment> {
	lab.deployments.delete("alpha");
	const second = await lab.add({ name: "alpha-2", service: "alpha", region: "r1", types: [Thing] });
	lab.deployments.set("alpha", alpha);
	lab.changed();
	await lab.run(second.write(thing("a")));
	return second;
}

/** A user writes the widget through a server of beta with this schema. */
export async function writeAsUser(
	{ lab, beta, w }: Pick<World, "lab" | "beta" | "w">,
	descriptor: ServiceDescriptor,
	init: Init,
): Promise<void> {
	const stored = await beta.read(w);
	const { data } = widget("w", init);
	if (stored === undefined || data === undefined) {
		throw new Error("the widget does not exist");
	}
	const resource = { ...stored, generation: newUlid(lab.runtime), data };
	const put = { op: "put", resource, expectedVersion: stored.version } as const;
	await lab.run(beta.withDescriptor(descriptor).commit([put], { caller: anyone }));
}

/** Applies the deletion of what a field of the widget holds, by a server of beta with this schema. */
export async function applyDeletion(
	{ lab, beta, recorded }: World,
	descriptor: ServiceDescriptor,
	field: string,
): Promise<void> {
	const { target, targetUid = "", deploymentUid = "" } = (await recorded()).get(field) ?? {};
	if (target === undefined) {
		throw new Error(`${field} is not recorded`);
	}
	const context = { ...beta.current.constraints.context, descriptor };
	const handler = new SubscribedDeletingHandler(context, beta.withDescriptor(descriptor));
	await lab.run(handler.handle({ target, targetUid, deploymentUid }));
}

/** A reference to a widget: a wrong type for the fields of a widget that name things. */
export const wrong = { ...referenceTo({ type: Widget.type, name: "a" }), region: "" };

/** A list that becomes a reference with this rule when it has elements already. */
export async function listed(rule: OnDelete, ...likes: (typeof wrong)[]) {
	const world = await referenced({ likes }, { likes: undefined });
	const { pass, types } = nextSchema(world, { likes: rule });
	await world.lab.run(pass.begin());
	await world.lab.run(pass.complete(new AbortController().signal));
	await world.restartBeta(types);
	await world.lab.pass(3_000);
	return { world, records: async () => (await world.beta.shadow(world.w))?.outgoing ?? [] };
}
