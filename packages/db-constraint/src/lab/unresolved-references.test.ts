import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type Origin, OriginSchema } from "@plinth/proto";
import { defineType, newUlid, referenceTo } from "@plinth/resource";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget } from "../../testdata/types.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readRecord, readShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { Lab, make } from "./lab.fixture.ts";
import { oneDeployment, type ThingInit, thing, to } from "./things.fixture.ts";

/** A deployment whose storage is older than its schema of references. */
async function olderStorage(
	resources: Readonly<Record<string, ThingInit>>,
	origins: Readonly<Record<string, Origin>> = {},
) {
	const lab = new Lab(1);
	const backend = createMemoryBackend({ runtime: lab.runtime });
	for (const [name, init] of Object.entries(resources)) {
		const resource = thing(name, init);
		const id = { ...lab.idOf(resource), uid: newUlid(lab.runtime) };
		await backend.commit([
			{
				op: "put",
				resource: {
					...{ ...resource, id, generation: newUlid(lab.runtime) },
					...(origins[name] && { origin: origins[name] }),
				},
				expectedVersion: "",
			},
		]);
	}
	const spec = { name: "alpha", service: "alpha", region: "", types: [Thing] };
	const alpha = await lab.add(spec, () => backend);
	return { lab, alpha, id: (name: string) => alpha.id(Thing, name) };
}

describe("references without a target or without a schema", () => {
	it("are not derived for copies of other clusters' resources", async () => {
		const { alpha, id } = await olderStorage(
			{ copy: { needs: to("missing") }, own: { needs: to("missing") } },
			{ copy: create(OriginSchema, { cluster: "west" }) },
		);
		expect(await alpha.shadow(id("own"))).toBeDefined();
		expect(await alpha.shadow(id("copy"))).toBeUndefined();
	});

	it("do not become BLOCK references to a copy, whose removal would not wait for them", async () => {
		const { alpha, id } = await olderStorage(
			{ copy: {}, own: { needs: to("copy") }, part: { belongsTo: to("copy") } },
			{ copy: create(OriginSchema, { cluster: "west" }) },
		);
		const outgoing = async (name: string) => (await alpha.shadow(id(name)))?.outgoing ?? [];
		const uid = (await alpha.read(id("copy")))?.id?.uid;
		expect((await outgoing("own")).map(({ targetUid }) => targetUid)).toEqual([""]);
		expect((await outgoing("part")).map(({ targetUid }) => targetUid)).toEqual([uid]);
		expect(alpha.failures).toEqual([]);
	});

	it("do not become BLOCK references to a copy beside others to it, however often they are looked up", async () => {
		const { lab, alpha, id } = await olderStorage(
			{ copy: {}, own: { needs: to("copy"), belongsTo: to("copy") } },
			{ copy: create(OriginSchema, { cluster: "west" }) },
		);
		await lab.pass(900_000);
		const uid = (await alpha.read(id("copy")))?.id?.uid;
		const outgoing = (await alpha.shadow(id("own")))?.outgoing ?? [];
		expect(outgoing.map(({ path, targetUid }) => [path, targetUid]).sort()).toEqual([
			["belongs_to", uid],
			["needs", ""],
		]);
		expect(alpha.failures).toEqual([]);
	});

	it("do not let an older pass change the record of a newer schema", async () => {
		let hook: (() => Promise<unknown>) | undefined;
		const { lab, alpha } = await oneDeployment({}, (backend) =>
			decorateBackend(backend, {
				async list(query, options) {
					const run = hook;
					hook = undefined;
					await run?.();
					return backend.list(query, options);
				},
			}),
		);
		const { context } = alpha.current.constraints;
		const older = new SchemaPass({
			...context,
			descriptor: new ServiceDescriptor({ types: [Thing], service: "older" }),
		});
		const newer = new SchemaPass({
			...context,
			descriptor: new ServiceDescriptor({ types: [Thing], service: "newer" }),
		});
		await lab.run(older.begin());
		hook = () => newer.begin();
		await lab.run(older.complete(new AbortController().signal).catch(() => {}));
		const record = await readRecord(alpha.backend, "descriptor");
		expect(record?.record.value).toMatchObject({ complete: false });
	});

	it("are kept for types that are no longer registered", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("user", { needs: to("a") })));
		alpha.crash();
		Object.assign(alpha.spec, { types: [] });
		await lab.run(alpha.start());
		expect((await alpha.shadow(id("user")))?.outgoing).toHaveLength(1);
		await expect(lab.run(alpha.delete(id("a")))).rejects.toThrow("it is referenced by");
	});

	it("are released by a group version without them", async () => {
		const { proto, dependencies } = ThingSchema.file;
		const copy = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, proto));
		copy.package = "acme.alpha.v2";
		copy.name = "acme/alpha/v2/thing.proto";
		for (const message of copy.messageType) {
			message.field = message.field.slice(0, 1);
			message.nestedType = [];
			message.oneofDecl = [];
		}
		const registry = createFileRegistry(copy, (name) =>
			dependencies.find((file) => file.proto.name === name),
		);
		const schema = registry.getMessage("acme.alpha.v2.Thing");
		if (schema === undefined) {
			throw new Error("the copy has no Thing");
		}
		const Thing2 = defineType(schema);
		const lab = new Lab(1);
		const spec = { name: "alpha", service: "alpha", region: "", types: [Thing, Thing2] };
		const alpha = await lab.add(spec);
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("user", { needs: to("a") })));
		await lab.run(alpha.write(make(Thing2, "user", create(Thing2.schema))));
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
	});

	it("do not block a later resource of the target's name", async () => {
		const { lab, alpha, id } = await olderStorage({ user: { likes: [to("late")] } });
		await lab.run(alpha.write(thing("late")));
		await lab.run(alpha.write(thing("other", { likes: [to("late")] })));
		await lab.run(alpha.delete(id("late")));
		await lab.pass(300_000);
		expect(await alpha.read(id("late"))).toBeUndefined();
	});

	it("are reported with the field to which they were moved, since they were missing", async () => {
		const { lab, alpha, id } = await olderStorage({ user: { likes: [to("late")] } });
		const [before] = (await alpha.shadow(id("user")))?.outgoing ?? [];
		expect(before).toMatchObject({ path: "likes", targetUid: "" });
		const moved = thing("user", { labels: { x: to("late") } });
		await lab.run(alpha.write({ ...moved, status: (await alpha.read(id("user")))?.status ?? {} }));
		const path = 'labels["x"]';
		expect((await alpha.shadow(id("user")))?.outgoing).toEqual([{ ...before, path, field: "5.2" }]);
		await lab.pass(300_000);
		const condition = (await alpha.read(id("user")))?.status.references?.conditions[0];
		expect(condition?.message).toContain(`${path}: alpha.Thing default/default/late`);
	});

	it("keep the records of two fields apart that name the same target", async () => {
		const { lab, alpha, id } = await olderStorage({
			user: { likes: [to("x")], labels: { y: referenceTo({ type: Widget.type, name: "x" }) } },
		});
		const stored = await readShadow(alpha.backend, shadowName(keyOf(id("user"), "")));
		const missing = stored?.shadow.outgoing ?? [];
		expect(missing.map(({ path }) => path).sort()).toEqual(['labels["y"]', "likes"]);
		const outgoing = missing.map((each, at) =>
			at === 0 || each.missing === undefined
				? each
				: { ...each, missing: { ...each.missing, isKept: true } },
		);
		if (stored !== undefined) {
			const { context } = alpha.current.constraints;
			await lab.run(replaceShadow(context, stored, { ...stored.shadow, outgoing }));
		}
		await lab.pass(600_000);
		expect((await alpha.shadow(id("user")))?.outgoing).toEqual(outgoing);
	});

	it("do not prevent other references from being cleared", async () => {
		const { lab, alpha, id } = await olderStorage({
			a: {},
			user: { likes: [to("late"), to("a")] },
		});
		await lab.run(alpha.delete(id("a")));
		await lab.pass(300_000);
		expect(await alpha.read(id("a"))).toBeUndefined();
	});

	it("allow changes of status and finalizers", async () => {
		const { lab, alpha, id } = await olderStorage({ user: { needs: to("late") } });
		await lab.run(alpha.write(thing("user", { needs: to("late") }), "mine"));
		await lab.run(alpha.write(thing("late")));
		await lab.run(alpha.write(thing("user", { needs: to("late") })));
		await expect(lab.run(alpha.delete(id("late")))).rejects.toThrow("it is referenced by");
	});

	it("do not prevent a start, even with unknown regions and wrong types", async () => {
		const { alpha, id } = await olderStorage({
			user: { needs: to("x", "nowhere") },
			wrong: { needs: referenceTo({ type: Widget.type, name: "x" }) },
		});
		expect(alpha.running).toBeDefined();
		expect((await alpha.read(id("user")))?.status.references).toBeDefined();
		expect((await alpha.read(id("wrong")))?.status.references).toBeDefined();
	});

	it("are derived in several commits if a resource has very many", async () => {
		const names = Array.from({ length: 150 }, (_, i) => `t-${i}`);
		const targets = Object.fromEntries(names.map((name) => [name, {}]));
		const { alpha, id } = await olderStorage({
			...targets,
			user: { likes: [...names.map((name) => to(name)), to("missing")] },
		});
		const outgoing = (await alpha.shadow(id("user")))?.outgoing ?? [];
		expect(outgoing.filter(({ targetUid }) => targetUid !== "")).toHaveLength(150);
	});
});
