import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { denied, newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Action, operatorsOf, restore } from "../deployments/settling.fixture.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { anyone } from "./anyone.fixture.ts";
import { listed, nextSchema, referenced, writeAsUser, wrong } from "./shared-targets.fixture.ts";
import { oneDeployment, thing, to } from "./things.fixture.ts";

const { BLOCK, UNSET } = OnDelete;
const someUid: unknown = expect.stringMatching(/./);

describe("a reference to a wrong type, from before its field was a reference", () => {
	it("is no reason not to establish one of the right type and the same name", async () => {
		const { world, records } = await listed(UNSET, wrong);
		expect(await records()).toMatchObject([{ targetUid: "", missing: { wrongType: Widget.key } }]);
		const { descriptor } = world.beta.current.constraints.context;
		await writeAsUser(world, descriptor, { likes: [wrong, to("a")] });
		expect(await records()).toMatchObject([{ targetUid: "" }, { targetUid: someUid }]);
	});

	it("does not hide what one of the right type has lost", async () => {
		const { world, records } = await listed(UNSET, wrong, to("a"));
		const { uid } = (await restore(world.lab, world.alpha, [], { noticedMs: 1_000 })).info;
		const operators = operatorsOf(world.lab, world.beta);
		const missing = await operators.missing(uid);
		const lost = missing.filter(({ targetUid }) => targetUid !== "");
		expect(await operators.settle(uid, Action.KEEP, lost)).toEqual(["SETTLED"]);
		expect(await records()).toMatchObject([
			{ missing: { wrongType: Widget.key, isKept: false } },
			{ missing: { wrongType: "", uid: someUid, isKept: true } },
		]);
	});

	it("is settled beside one of the right type, by its own", async () => {
		const { world, records } = await listed(UNSET, { ...wrong, name: "gone" }, to("gone"));
		const { lab, alpha, beta } = world;
		const operators = operatorsOf(lab, beta);
		const missing = await operators.missing(alpha.info.uid);
		expect(missing.map(({ wrongType }) => wrongType)).toEqual([Widget.key, ""]);
		const [, right] = missing;
		await operators.settle(alpha.info.uid, Action.KEEP, right === undefined ? [] : [right]);
		expect((await records()).map((each) => each.missing?.isKept)).toEqual([false, true]);
		await operators.settle(alpha.info.uid, Action.KEEP, missing);
		expect((await records()).map((each) => each.missing?.isKept)).toEqual([true, true]);
	});

	it("is refused where a user adds it later", async () => {
		const { world } = await listed(UNSET, wrong);
		const { descriptor } = world.beta.current.constraints.context;
		const written = writeAsUser(world, descriptor, { likes: [wrong, { ...wrong, name: "b" }] });
		await expect(written).rejects.toThrow(
			`likes must reference a alpha.Thing, not a ${Widget.key}`,
		);
	});

	it.each<[string, OnDelete | undefined]>([
		["has become a reference", undefined],
		["has got another rule", UNSET],
	])("does not keep users from writing something else while the field %s", async (_how, before) => {
		const world = await referenced({ likes: [wrong] }, { likes: undefined });
		if (before !== undefined) {
			const { pass } = nextSchema(world, { likes: before });
			await world.lab.run(pass.begin());
			await world.lab.run(pass.complete(new AbortController().signal));
		}
		const { descriptor, pass } = nextSchema(world, { likes: BLOCK });
		await world.lab.run(pass.begin());
		await writeAsUser(world, descriptor, { likes: [wrong], note: "changed" });
		const all = [...(await world.recorded()).values()];
		expect(all).toMatchObject([{ path: "likes", targetUid: "" }]);
	});
});

describe("a wrong type that a user corrects", () => {
	it("holds its target", async () => {
		const { world } = await listed(BLOCK, wrong);
		const { lab, alpha, a, beta } = world;
		await writeAsUser(world, beta.current.constraints.context.descriptor, { likes: [to("a")] });
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it("needs a target", async () => {
		const { world } = await listed(BLOCK, { ...wrong, name: "gone" });
		const { descriptor } = world.beta.current.constraints.context;
		const written = writeAsUser(world, descriptor, { likes: [to("gone")] });
		await expect(written).rejects.toThrow("does not exist");
	});

	it("needs the right to name it", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const start = async (likes: OnDelete | undefined) => {
			alpha.crash();
			Object.assign(alpha.spec, { types: [withRules(Thing, { likes })] });
			await lab.run(alpha.start());
		};
		await start(undefined);
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("user", { likes: [wrong] })));
		await start(BLOCK);
		await lab.pass(3_000);
		const stored = (await alpha.read(id("user"))) as Resource;
		const { data } = thing("user", { likes: [to("a")] });
		const resource = { ...stored, generation: newUlid(lab.runtime), data } as Resource;
		const put = { op: "put", resource, expectedVersion: stored.version } as const;
		const caller = { ...anyone, decideReference: () => denied("it is secret") };
		await expect(lab.run(alpha.store.commit([put], { caller }))).rejects.toThrow("it is secret");
	});
});
