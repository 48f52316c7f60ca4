import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { inVersion2, withFields, withRules } from "../simulation/schemas.fixture.ts";
import {
	addSecond,
	beginDeletion,
	keepLost,
	listed,
	nextSchema,
	referenced,
	type World,
	writeAsUser,
	wrong,
} from "./shared-targets.fixture.ts";
import { to } from "./things.fixture.ts";

const { BLOCK, UNSET } = OnDelete;
const never = new AbortController().signal;

/** The records of the widget as servers before revision 4 write them: without numbers of fields and wrong types. */
async function recordAsOlder(
	{ lab, beta, w }: World,
	change = (records: OutgoingReference[]) => records,
): Promise<void> {
	const stored = await readShadow(beta.backend, shadowName(lab.keyOf(beta, w)));
	if (stored === undefined) {
		throw new Error("the widget has no shadow");
	}
	const records = stored.shadow.outgoing.map((each) => ({
		...{ ...each, field: "" },
		...(each.missing && { missing: { ...each.missing, wrongType: "" } }),
	}));
	const next = { ...stored.shadow, outgoing: change(records) };
	await lab.run(replaceShadow(beta.current.constraints.context, stored, next));
}

/** Two fields with one target and rule have one record, with the path of the last one. */
function recordOnce(world: World, path: string): Promise<void> {
	return recordAsOlder(world, (records) => records.filter((each) => each.path === path));
}

/** Whether the record with a target or that without one comes first. */
const orders = [
	[
		"held first",
		(a: OutgoingReference, b: OutgoingReference) => b.targetUid.length - a.targetUid.length,
	],
	[
		"held last",
		(a: OutgoingReference, b: OutgoingReference) => a.targetUid.length - b.targetUid.length,
	],
] as const;

async function derive(world: World, next: { readonly pass: SchemaPass }): Promise<void> {
	await world.lab.run(next.pass.begin());
	await world.lab.run(next.pass.complete(never));
}

describe("a field whose record names another field", () => {
	const init = { needs: to("a"), likes: [to("a")] };

	it("holds the target when a user writes something else", async () => {
		const world = await referenced(init, { needs: BLOCK, likes: BLOCK });
		await recordOnce(world, "likes");
		const { lab, beta, alpha, a } = world;
		alpha.crash();
		await writeAsUser(world, beta.current.constraints.context.descriptor, { ...init, note: "x" });
		await lab.run(alpha.start());
		const { needs, likes } = Object.fromEntries(await world.recorded());
		expect(needs).toEqual({ ...likes, path: "needs", field: "2" });
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it("holds it if a new schema drops the field that is named", async () => {
		const world = await referenced(init, { needs: BLOCK, likes: BLOCK });
		await recordOnce(world, "likes");
		const { lab, alpha, a } = world;
		const { descriptor, pass } = nextSchema(world, { needs: BLOCK, likes: undefined });
		await lab.run(pass.begin());
		await writeAsUser(world, descriptor, { ...init, note: "changed" });
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it("keeps the decision to keep what is lost", async () => {
		const world = await referenced(init, { needs: UNSET, likes: UNSET });
		await keepLost(world);
		await recordOnce(world, "likes");
		await derive(world, nextSchema(world, { needs: UNSET, likes: UNSET, belongs_to: UNSET }));
		const { needs, likes } = Object.fromEntries(await world.recorded());
		expect(needs).toMatchObject({ field: "2", missing: { isKept: true } });
		expect(likes).toMatchObject({ field: "4", missing: { isKept: true } });
	});
});

it("a reference that a user moves from a renamed field keeps the decision about it", async () => {
	const rules = { needs: BLOCK, likes: BLOCK };
	const world = await referenced({ needs: to("a") }, rules);
	await keepLost(world);
	await recordAsOlder(world);
	const types = [withFields(withRules(Widget, rules), { needs: { name: "requires" } })];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...world.beta.current.constraints.context, descriptor });
	await world.lab.run(pass.begin());
	await writeAsUser(world, descriptor, { likes: [to("a")] });
	const all = [...(await world.recorded()).values()];
	expect(all).toMatchObject([{ path: "likes", missing: { isKept: true } }]);
});

describe("a wrong type", () => {
	it("is told from nothing else, and stays kept", async () => {
		const { world, records } = await listed(UNSET, wrong);
		const keep = (each: OutgoingReference) => ({
			...each,
			...(each.missing && { missing: { ...each.missing, isKept: true } }),
		});
		await recordAsOlder(world, (all) => all.map(keep));
		const next = nextSchema(world, { likes: UNSET, needs: UNSET });
		await derive(world, next);
		await writeAsUser(world, next.descriptor, { likes: [wrong], note: "changed" });
		const missing = { isKept: true, wrongType: Widget.key };
		expect(await records()).toMatchObject([{ field: "4", missing }]);
	});

	describe.each(orders)("beside the right one of the same name, %s", (_order, compare) => {
		const likes = [wrong, to("a")];
		const record = (world: World) => recordAsOlder(world, (all) => all.toSorted(compare));

		it("leaves the target held when a user writes something else", async () => {
			const { world } = await listed(BLOCK, ...likes);
			await record(world);
			const { lab, alpha, a, beta } = world;
			const { descriptor } = beta.current.constraints.context;
			await writeAsUser(world, descriptor, { likes, note: "changed" });
			await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
		});

		it("leaves it to a deletion that has begun", async () => {
			const { world, records } = await listed(UNSET, ...likes);
			await record(world);
			const { lab, alpha, a, beta } = world;
			await beginDeletion(world, alpha);
			const { descriptor } = beta.current.constraints.context;
			await writeAsUser(world, descriptor, { likes, note: "changed" });
			await lab.pass(900_000);
			expect(await alpha.read(a)).toBeUndefined();
			expect(await records()).toMatchObject([{ missing: { wrongType: Widget.key } }]);
		});

		it("leaves it to its deployment", async () => {
			const { world, records } = await listed(UNSET, ...likes);
			await addSecond(world);
			await record(world);
			await derive(world, nextSchema(world, { likes: UNSET, needs: UNSET }));
			const held = (await records()).filter(({ targetUid }) => targetUid !== "");
			expect(held).toMatchObject([{ deploymentUid: world.alpha.info.uid }]);
		});

		it("leaves it to its deployment when the type is not registered any more", async () => {
			const { world, records } = await listed(BLOCK, ...likes);
			await addSecond(world);
			await record(world);
			const types = [inVersion2(withRules(Widget, { likes: BLOCK }))];
			const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
			const { context } = world.beta.current.constraints;
			await derive(world, { pass: new SchemaPass({ ...context, descriptor }) });
			const held = (await records()).filter(({ targetUid }) => targetUid !== "");
			expect(held).toMatchObject([{ deploymentUid: world.alpha.info.uid }]);
		});
	});
});
