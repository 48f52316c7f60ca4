/** Unusual but valid requests, which the simulation does not generate. */
import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
	FieldOptionsSchema,
	FieldDescriptorProto_Type as FieldType,
	FileDescriptorProtoSchema,
	FieldDescriptorProto_Label as Label,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import {
	type ID,
	OwnerReferenceSchema,
	ReferenceSchema,
	type Resource,
	Scope,
	spec,
	TypeSpecSchema,
} from "@plinth/proto";
import {
	OnDelete,
	reference,
	SchemaReferenceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { newUlid, referenceTo } from "@plinth/resource";
import { createMemoryBackend, decorateBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { statusKey } from "../controller/reported-status.ts";
import { ReferenceFields } from "../schema/reference-fields.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

type ThingInit = Parameters<typeof create<typeof ThingSchema>>[1];
type WidgetInit = Parameters<typeof create<typeof WidgetSchema>>[1];

const nobody = "01JDXXXXXXXXXXXXXXXXXXXXXX";
const thing = (name: string, init: ThingInit = {}) => make(Thing, name, create(ThingSchema, init));
const widget = (init: WidgetInit = {}) => make(Widget, "w", create(WidgetSchema, init));
const to = (name: string) => referenceTo({ type: Thing.type, name });
/** A reference of a wrong type with the name of a thing. */
const wrongTo = (name: string) => referenceTo({ type: Widget.type, name });

function ownedBy(resource: Resource, ...owners: readonly { id: ID; uid: string }[]): Resource {
	const ownerReferences = owners.map(({ id: { type, tenancy, name }, uid }) =>
		create(OwnerReferenceSchema, {
			name,
			uid,
			region: "r1",
			...(type && { type }),
			...(tenancy && { tenancy }),
		}),
	);
	return { ...resource, ownerReferences };
}

/** Counts the commits that reach a storage. */
function counted(counts: { commits: number }) {
	return (backend: StorageBackend): StorageBackend =>
		decorateBackend(backend, {
			commit: (mutations, options) => {
				counts.commits += 1;
				return backend.commit(mutations, options);
			},
		});
}

async function two(
	counts = { commits: 0 },
	decorateTransport?: (transport: Transport) => Transport,
) {
	const lab = new Lab(1, {}, decorateTransport);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const spec = { name: "beta", service: "beta", region: "r1", types: [Widget] };
	const beta = await lab.add({ ...spec, foreignTypes: [Thing] }, counted(counts));
	return { lab, alpha, beta, w: beta.id(Widget, "w") };
}

async function one() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "", types: [Thing] });
	return { lab, alpha, id: (name: string) => alpha.id(Thing, name) };
}

/** A deployment over resources that were stored before their types had references. */
async function older(resources: readonly Resource[], counts = { commits: 0 }, lab = new Lab(1)) {
	const backend = createMemoryBackend({ runtime: lab.runtime });
	for (const each of resources) {
		const uid = newUlid(lab.runtime);
		const resource = { ...each, ...(each.id && { id: { ...each.id, uid } }), generation: uid };
		await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	}
	const isBeta = resources.some(({ id }) => id?.type?.group === Widget.type.group);
	const deployment = await lab.add(
		isBeta
			? { name: "beta", service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] }
			: { name: "alpha", service: "alpha", region: "", types: [Thing] },
		() => counted(counts)(backend),
	);
	return { lab, deployment };
}

/** Changes a stored resource and keeps its status, like the API. */
async function put(lab: Lab, deployment: LabDeployment, id: ID, change: Partial<Resource>) {
	const stored = await deployment.read(id);
	if (stored === undefined) {
		throw new Error("the resource does not exist");
	}
	const resource = { ...stored, ...change, generation: newUlid(lab.runtime) };
	await lab.run(
		deployment.store.commit([{ op: "put", resource, expectedVersion: stored.version }]),
	);
}

async function reports(deployment: LabDeployment, id: ID) {
	const conditions = (await deployment.read(id))?.status[statusKey]?.conditions ?? [];
	return conditions.map(({ type, state, message }) => ({ type, state, message }));
}

/** A file of proto2 with one message, whose fields are references with UNSET. */
function messageWith(syntax: string, field: (name: string) => object, nested: object[] = []) {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	const fieldOptions = create(FieldOptionsSchema);
	const rule = { type: "demo.v1.Odd", onDelete: OnDelete.UNSET };
	setExtension(fieldOptions, reference, create(SchemaReferenceSchema, rule));
	const file = create(FileDescriptorProtoSchema, {
		name: "odd/demo/v1/odd.proto",
		package: "odd.demo.v1",
		syntax,
		dependency: [ReferenceSchema.file.proto.name],
		messageType: [
			{
				name: "Odd",
				options,
				field: [{ number: 1, type: FieldType.MESSAGE, options: fieldOptions, ...field("to") }],
				nestedType: nested,
			},
		],
	});
	const registry = createFileRegistry(file, () => ReferenceSchema.file);
	const schema = registry.getMessage("odd.demo.v1.Odd");
	if (schema === undefined) {
		throw new Error("the message does not exist");
	}
	return schema;
}

describe("fields", () => {
	it("are cleared in one pass over a list with many duplicates", () => {
		const likes = Array.from({ length: 20_000 }, (_, i) => to(i % 10_000 === 1 ? "kept" : "t"));
		const fields = new ReferenceFields(ThingSchema);
		const message = create(ThingSchema, { likes });
		const left = fields.without(message, (found) => found.reference.name === "t");
		expect(left).toMatchObject({ likes: [{ name: "kept" }, { name: "kept" }] });
	});

	it("may be maps with keys of 64 bits", () => {
		const typeName = `.${ReferenceSchema.typeName}`;
		const schema = messageWith(
			"proto3",
			(name) => ({ name, typeName: ".odd.demo.v1.Odd.ToEntry", label: Label.REPEATED }),
			[
				{
					name: "ToEntry",
					options: create(MessageOptionsSchema, { mapEntry: true }),
					field: [
						{ name: "key", number: 1, type: FieldType.INT64, label: Label.OPTIONAL },
						{ name: "value", number: 2, type: FieldType.MESSAGE, typeName, label: Label.OPTIONAL },
					],
				},
			],
		);
		const message = create(schema, { to: { 7: create(ReferenceSchema, { name: "t" }) } });
		const found = new ReferenceFields(schema).find(message);
		expect(found.map(({ path }) => path)).toEqual(["to[7]"]);
	});

	it("can't be UNSET if proto2 requires them", () => {
		const typeName = `.${ReferenceSchema.typeName}`;
		const schema = messageWith("proto2", (name) => ({ name, typeName, label: Label.REQUIRED }));
		expect(() => new ReferenceFields(schema)).toThrow("can't be UNSET: the field is required");
	});
});

describe("references to a wrong type, from before the field was a reference", () => {
	for (const likes of [
		[wrongTo("t"), to("t")],
		[to("t"), wrongTo("t")],
	]) {
		it(`do not cause repeated passes beside one of the same name: ${likes.map(({ type }) => type?.kind)}`, async () => {
			const lab = new Lab(1);
			const alpha = await lab.add({
				name: "alpha",
				service: "alpha",
				region: "r1",
				types: [Thing],
			});
			await lab.run(alpha.write(thing("t")));
			const counts = { commits: 0 };
			const { deployment: beta } = await older([widget({ likes })], counts, lab);
			const w = beta.id(Widget, "w");
			await lab.pass(10_000);
			const before = counts.commits;
			await lab.pass(60_000);
			// It looks it up again every 30 s, with the same result.
			expect(counts.commits).toBeLessThan(before + 4);
			await put(lab, beta, w, { metadata: { x: "y" } });
			await put(lab, beta, w, { metadata: { x: "z" } });
			expect(
				(await beta.shadow(w))?.outgoing.map(({ targetUid }) => targetUid !== "").sort(),
			).toEqual([false, true]);
		});
	}

	it("do not prevent another reference of their resource from being cleared", async () => {
		const before = thing("v", { likes: [wrongTo("t"), to("t")], labels: { k: to("t2") } });
		const { lab, deployment: alpha } = await older([thing("t"), thing("t2"), before]);
		await lab.run(alpha.delete(alpha.id(Thing, "t2")));
		await lab.pass(60_000);
		expect(await alpha.read(alpha.id(Thing, "t2"))).toBeUndefined();
	});
});

describe("one commit", () => {
	it("can't reference a resource that it marks", async () => {
		const { lab, alpha, id } = await one();
		await lab.run(alpha.write(thing("a"), "user/holds"));
		await lab.run(alpha.write(thing("c", { needs: to("a") })));
		await lab.run(alpha.write(thing("c")));
		await lab.run(alpha.write(thing("b")));
		const [a, b] = [await alpha.read(id("a")), await alpha.read(id("b"))];
		if (a === undefined || b === undefined) {
			throw new Error("they were not written");
		}
		const metadata = { ...a.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
		const { data } = thing("b", { needs: to("a") });
		const commit = alpha.store.commit([
			{ op: "put", resource: { ...b, ...(data && { data }) }, expectedVersion: b.version },
			{ op: "put", resource: { ...a, metadata }, expectedVersion: a.version },
		]);
		await expect(lab.run(commit)).rejects.toThrow("which is being deleted");
		expect((await alpha.shadow(id("a")))?.lifecycle).not.toBe(Lifecycle.DELETING);
	});

	it("may name the finalizer of references twice, which counts once", async () => {
		const { lab, alpha, id } = await one();
		await lab.run(alpha.write(thing("a"), "user/x"));
		await lab.run(alpha.write(thing("b", { belongsTo: to("a") }), "user/y"));
		await lab.run(alpha.delete(id("a")));
		await lab.pass(3_000);
		const metadata = (await alpha.read(id("a")))?.metadata;
		const finalizers = `${referencesFinalizer} ${referencesFinalizer}`;
		await put(lab, alpha, id("a"), { metadata: { ...metadata, finalizers } });
		expect((await alpha.read(id("a")))?.metadata.finalizers).toBe(referencesFinalizer);
	});
});

describe("owners", () => {
	it("have a full grace period when they are named again", async () => {
		const { lab, alpha, beta, w } = await two();
		await lab.run(alpha.write(thing("t")));
		const owned = ownedBy(widget({ needs: to("t") }), { id: alpha.id(Thing, "a"), uid: nobody });
		await lab.run(beta.write(owned));
		await lab.pass(2_000);
		await lab.run(beta.write(widget({ needs: to("t") })));
		await lab.pass(120_000);
		await lab.run(beta.write(owned));
		await lab.pass(25_000);
		expect(await beta.read(w)).toBeDefined();
		await lab.pass(60_000);
		expect(await beta.read(w)).toBeUndefined();
	});

	it("are recorded in one change, however many a resource has, and so are confirmations", async () => {
		const counts = { commits: 0 };
		const { lab, alpha, beta, w } = await two(counts);
		const owners = [];
		for (let i = 0; i < 60; i++) {
			const { id } = await lab.run(alpha.write(thing(`t${i}`)));
			owners.push({ id: alpha.id(Thing, `t${i}`), uid: id?.uid ?? "" });
		}
		const likes = owners.map(({ id }) => to(id.name));
		await lab.run(beta.write(ownedBy(widget({ likes }), ...owners)));
		counts.commits = 0;
		await lab.pass(10_000);
		const shadow = await beta.shadow(w);
		expect(shadow?.tasks).toEqual([]);
		expect(shadow?.metaOwners.every(({ valid }) => valid)).toBe(true);
		expect(counts.commits).toBeLessThan(10);
	});

	it("are queried in batches, and during their deletion only as often as a verdict counts", async () => {
		let calls = 0;
		const decorateTransport = (transport: Transport): Transport => ({
			...transport,
			unary: (method, ...rest) => {
				calls += method.name === "CheckMetaOwners" ? 1 : 0;
				return transport.unary(method, ...rest);
			},
		});
		const { lab, alpha, beta } = await two(undefined, decorateTransport);
		const { id } = await lab.run(alpha.write(thing("a")));
		const owner = { id: alpha.id(Thing, "a"), uid: id?.uid ?? "" };
		for (let i = 0; i < 100; i++) {
			await lab.run(beta.write(ownedBy(make(Widget, `w${i}`, create(WidgetSchema)), owner)));
		}
		await lab.pass(20_000);
		await lab.run(alpha.delete(owner.id));
		await lab.pass(60_000);
		expect(await alpha.read(owner.id)).toBeUndefined();
		expect(calls).toBeLessThan(100);
	});

	it("are found once their type is known, and with it the defaults that a reference omits", async () => {
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const { id } = await lab.run(alpha.write(thing("a")));
		const spec: { foreignTypes?: (typeof Thing)[] } = {};
		const service = { name: "beta", service: "beta", region: "r1", types: [Widget] };
		const beta = await lab.add(Object.assign(spec, service));
		const { tenancy: _, ...short } = alpha.id(Thing, "a");
		await lab.run(beta.write(ownedBy(widget(), { id: short, uid: id?.uid ?? "" })));
		await lab.pass(10_000);
		beta.crash();
		Object.assign(beta.spec, { foreignTypes: [Thing] });
		await lab.run(beta.start());
		await lab.pass(10_000);
		expect((await beta.shadow(beta.id(Widget, "w")))?.metaOwners).toMatchObject([{ valid: true }]);
	});
});

describe("a cascade", () => {
	it("continues if one of its resources fails", async () => {
		const { lab, alpha, id } = await one();
		await lab.run(alpha.write(thing("t")));
		await lab.run(alpha.write(thing("a", { likes: [to("t")] })));
		await lab.run(alpha.write(thing("b", { belongsTo: to("t") })));
		const { descriptor } = alpha.current.constraints.context;
		const without = descriptor.without.bind(descriptor);
		descriptor.without = (resource, drops) => {
			if (resource.id?.name === "a") {
				throw new Error("this one fails");
			}
			return without(resource, drops);
		};
		await lab.run(alpha.delete(id("t")));
		await lab.pass(60_000);
		expect(await alpha.read(id("b"))).toBeUndefined();
		expect(await alpha.read(id("a"))).toBeDefined();
		descriptor.without = without;
		await lab.pass(120_000);
		expect(await alpha.read(id("t"))).toBeUndefined();
	});
});

describe("reports", () => {
	const missing = (count: number) => Array.from({ length: count }, (_, i) => to(`x${i}`));

	it("name some of many missing targets", async () => {
		const { deployment: alpha } = await older([thing("u", { likes: missing(1_000) })]);
		const [report] = await reports(alpha, alpha.id(Thing, "u"));
		expect(report?.message).toContain("and 990 more");
	});

	it("include missing targets of other deployments, even if there are many", async () => {
		const lab = new Lab(1);
		await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const { deployment: beta } = await older([widget({ likes: missing(100) })], undefined, lab);
		await lab.pass(60_000);
		const [report] = await reports(beta, beta.id(Widget, "w"));
		expect(report?.message).toContain("and 90 more");
	});

	it("end with the write that removes their reason", async () => {
		const { lab, deployment: alpha } = await older([thing("u", { needs: to("late") }), thing("t")]);
		const u = alpha.id(Thing, "u");
		expect(await reports(alpha, u)).toMatchObject([
			{ message: "missing: needs: alpha.Thing default/default/late" },
		]);
		const { data } = thing("u", { needs: to("t") });
		await put(lab, alpha, u, { ...(data && { data }) });
		expect(await reports(alpha, u)).toMatchObject([{ type: "ReferencesResolved", message: "" }]);
	});

	it("of a deployment that was deleted end with the reference to it", async () => {
		const { lab, alpha, beta, w } = await two();
		await lab.run(alpha.write(thing("t")));
		await lab.run(beta.write(widget({ needs: to("t") })));
		await lab.pass(5_000);
		lab.retire(alpha);
		await lab.pass(60_000);
		expect((await reports(beta, w))[0]?.message).toContain("references to a deleted deployment");
		const { data } = widget();
		await put(lab, beta, w, { ...(data && { data }) });
		expect(await reports(beta, w)).toMatchObject([{ type: "TargetsKept", message: "" }]);
	});

	it("name the resource whose references have no room", async () => {
		const many = Array.from({ length: 20_000 }, (_, i) =>
			create(ReferenceSchema, { name: `x${i}` }),
		);
		await expect(older([thing("u", { likes: many })])).rejects.toThrow(
			"the references of alpha.Thing default/default/u do not fit into its shadow",
		);
	});
});
