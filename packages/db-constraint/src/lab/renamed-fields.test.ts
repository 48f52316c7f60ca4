import { clone, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import {
	addSecond,
	keepLost,
	nextSchema,
	type Rules,
	referenced,
	type World,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { to } from "./things.fixture.ts";

const someUid: unknown = expect.stringMatching(/./);

const { BLOCK, UNSET } = OnDelete;
const never = new AbortController().signal;

/** The type with another name for a field, and the same number: stored data stays valid. */
function renamed({ schema }: ResourceType, from: string, name: string): ResourceType {
	const file = clone(FileDescriptorProtoSchema, schema.file.proto);
	const message = file.messageType.find((each) => each.name === schema.name);
	const field = message?.field.find((each) => each.name === from);
	Object.assign(field ?? {}, { name, jsonName: name });
	const registry = createFileRegistry(file, (imported) =>
		schema.file.dependencies.find((each) => each.proto.name === imported),
	);
	const changed = registry.getMessage(schema.typeName);
	if (field === undefined || changed === undefined) {
		throw new Error(`${schema.typeName} has no field ${from}`);
	}
	return defineType(changed);
}

/** A schema of beta in which `needs` is `requires`. */
function renaming({ beta }: World, rules: Rules = {}) {
	const types = [renamed(withRules(Widget, rules), "needs", "requires")];
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...beta.current.constraints.context, descriptor });
	return { types, descriptor, pass };
}

async function recordsOf({ recorded }: World) {
	return [...(await recorded()).values()];
}

describe("a field that a new schema renames", () => {
	it("holds its target when a user writes something else before it is derived", async () => {
		const world = await referenced({ needs: to("a") });
		const { lab, alpha, a } = world;
		const { descriptor, pass } = renaming(world);
		await lab.run(pass.begin());
		await writeAsUser(world, descriptor, { needs: to("a"), note: "changed" });
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", targetUid: someUid }]);
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("it is referenced by");
	});

	it.each<[string, Rules]>([
		["by the same rule", {}],
		["by another rule", { needs: UNSET }],
	])("keeps the decision of operators to keep what is lost, %s", async (_how, rules) => {
		const world = await referenced({ needs: to("a") });
		await keepLost(world);
		const { pass } = renaming(world, rules);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		const missing = { isKept: true, uid: someUid };
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", missing }]);
	});

	it("keeps its deployment", async () => {
		const world = await referenced({ needs: to("a") });
		await addSecond(world);
		const { pass } = renaming(world);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		expect(await recordsOf(world)).toMatchObject([{ deploymentUid: world.alpha.info.uid }]);
	});

	it("is derived though the deployment of its target is down", async () => {
		const world = await referenced({ needs: to("a") });
		world.alpha.crash();
		const { pass } = renaming(world);
		await world.lab.run(pass.begin());
		await world.lab.run(pass.complete(never));
		expect(await recordsOf(world)).toMatchObject([{ path: "requires", targetUid: someUid }]);
	});

	it("is told from a field that a user adds, whose target is established", async () => {
		const world = await referenced({ needs: to("a") }, { needs: BLOCK, likes: BLOCK });
		const { lab, alpha } = world;
		const { descriptor, pass } = nextSchema(world, { needs: undefined, likes: BLOCK });
		await lab.run(pass.begin());
		alpha.crash();
		const written = writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		await expect(written).rejects.toThrow("can't be reached");
		await lab.run(alpha.start());
		await writeAsUser(world, descriptor, { needs: to("a"), likes: [to("a")] });
		expect(await recordsOf(world)).toMatchObject([{ path: "likes", targetUid: someUid }]);
	});

	it("is cleared by a deletion that has begun before", async () => {
		const world = await referenced({ needs: to("a") }, { needs: UNSET });
		const { lab, alpha, a } = world;
		const { pass, types } = renaming(world, { needs: UNSET });
		await lab.run(pass.begin());
		await lab.run(alpha.delete(a));
		await lab.run(pass.complete(never));
		await world.restartBeta(types);
		await lab.pass(600_000);
		expect(await recordsOf(world)).toEqual([]);
		expect(await alpha.read(a)).toBeUndefined();
	});
});

/** As servers before revision 4 record two fields with one target and rule: once, with the path of the last one. */
async function recordOnce({ lab, beta, w }: World, path: string): Promise<void> {
	const stored = await readShadow(beta.backend, shadowName(lab.keyOf(beta, w)));
	if (stored === undefined) {
		throw new Error("the widget has no shadow");
	}
	const outgoing = stored.shadow.outgoing.filter((each) => each.path === path);
	const next = { ...stored.shadow, outgoing };
	await lab.run(replaceShadow(beta.current.constraints.context, stored, next));
}

describe("a field whose record names another field, as servers before revision 4 write it", () => {
	const init = { needs: to("a"), likes: [to("a")] };

	it("holds the target when a user writes something else", async () => {
		const world = await referenced(init, { needs: BLOCK, likes: BLOCK });
		await recordOnce(world, "likes");
		const { lab, beta, alpha, a } = world;
		alpha.crash();
		await writeAsUser(world, beta.current.constraints.context.descriptor, { ...init, note: "x" });
		await lab.run(alpha.start());
		const { needs, likes } = Object.fromEntries(await world.recorded());
		expect(needs).toEqual({ ...likes, path: "needs" });
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
});
