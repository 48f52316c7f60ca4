import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { OriginSchema, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { newUlid, referenceTo } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { CasFailure, Refused } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { assertUnreferenced, readShadow } from "../shadow/shadow-records.ts";
import { replaceShadow } from "../shadow/shadow-update.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

type Init = Parameters<typeof create<typeof ThingSchema>>[1];

const thing = (name: string, init: Init = {}) => make(Thing, name, create(ThingSchema, init));
const to = (name: string) => referenceTo({ type: Thing.type, name });

async function oneDeployment() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "", types: [Thing] });
	return { lab, alpha, id: (name: string) => alpha.id(Thing, name) };
}

/** Stores a copy as an import does, beside the references. */
async function storeCopy(alpha: LabDeployment): Promise<Resource> {
	const copy = { ...thing("copy"), origin: create(OriginSchema, { cluster: "west" }) };
	const resource = { ...copy, id: { ...alpha.id(Thing, "copy"), uid: newUlid(systemRuntime) } };
	const { resources } = await alpha.backend.commit([{ op: "put", resource, expectedVersion: "" }]);
	return resources[0] ?? resource;
}

describe("references within a deployment", () => {
	it("refuses a reference to a missing target, and names field and target", async () => {
		const { lab, alpha } = await oneDeployment();
		const write = lab.run(alpha.write(thing("a", { needs: to("nobody") })));
		await expect(write).rejects.toThrow(
			"needs references alpha.Thing default/default/nobody, which does not exist",
		);
		await expect(write).rejects.toSatisfy((it) => it instanceof Refused && it.code === 9);
		expect(Code.FailedPrecondition).toBe(9);
	});

	it("refuses a BLOCK reference to a copy of another cluster's resource, whose removal does not wait for it", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const stored = await storeCopy(alpha);
		await expect(lab.run(alpha.write(thing("user", { needs: to("copy") })))).rejects.toThrow(
			"needs references alpha.Thing default/default/copy, which is a copy of a resource of another cluster: only CASCADE and UNSET references to it are possible",
		);
		expect(await alpha.read(id("copy"))).toEqual(stored);
		expect(await alpha.read(id("user"))).toBeUndefined();
		// Also beside another reference to it.
		const part = thing("part", { belongsTo: to("copy") });
		await lab.run(alpha.write(part));
		const both = thing("part", { belongsTo: to("copy"), needs: to("copy") });
		await expect(lab.run(alpha.write(both))).rejects.toThrow("only CASCADE and UNSET");
		expect((await alpha.read(id("part")))?.data).toEqual(part.data);
	});

	it("applies the rules of the references to a copy when that is removed, but not beside them", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const { version: expectedVersion } = await storeCopy(alpha);
		await lab.run(alpha.write(thing("part", { belongsTo: to("copy") })));
		await lab.run(alpha.write(thing("fan", { likes: [to("copy")], note: "kept" })));
		const removal = { op: "delete", id: id("copy"), expectedVersion } as const;
		await expect(alpha.backend.commit([removal, assertUnreferenced(id("copy"))])).rejects.toThrow(
			CasFailure,
		);
		await lab.run(alpha.store.commit([removal]));
		await lab.pass(60_000);
		expect(await alpha.read(id("copy"))).toBeUndefined();
		expect(await alpha.read(id("part"))).toBeUndefined();
		expect((await alpha.read(id("fan")))?.data).toEqual(thing("fan", { note: "kept" }).data);
		expect(alpha.failures).toEqual([]);
		const again = await storeCopy(alpha);
		await alpha.backend.commit([
			{ ...removal, expectedVersion: again.version },
			assertUnreferenced(id("copy")),
		]);
		expect(await alpha.read(id("copy"))).toBeUndefined();
	});

	it("keeps a reference to a copy whose rule has become BLOCK", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const copy = await storeCopy(alpha);
		await lab.run(alpha.write(thing("user", { belongsTo: to("copy") })));
		// As an earlier schema has recorded it.
		const stored = await readShadow(alpha.backend, shadowName(keyOf(id("user"), "")));
		const user = await alpha.read(id("user"));
		if (stored === undefined || user === undefined) {
			throw new Error("nothing was stored");
		}
		const { context } = alpha.current.constraints;
		const outgoing = stored.shadow.outgoing.map((each) => ({ ...each, path: "needs", field: "2" }));
		await lab.run(replaceShadow(context, stored, { ...stored.shadow, outgoing }));
		const { data } = thing("user", { needs: to("copy") });
		const next = { op: "put", resource: { ...user, data }, expectedVersion: user.version } as const;
		await alpha.backend.commit([next]);
		await lab.run(deriveReferences(context, id("user")));
		expect((await alpha.shadow(id("user")))?.outgoing).toMatchObject([
			{ path: "needs", rule: OnDelete.BLOCK, targetUid: copy.id?.uid },
		]);
	});

	it("refuses to delete a resource that is referenced with BLOCK, and leaves no records behind", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("target")));
		await lab.run(alpha.write(thing("user", { needs: to("target") })));
		const deletion = lab.run(alpha.delete(id("target")));
		await expect(deletion).rejects.toThrow(
			"alpha.Thing default/default/target can't be deleted: it is referenced by alpha.Thing default/default/user",
		);
		expect((await alpha.shadow(id("target")))?.lifecycle).toBe(1);
		await lab.run(alpha.write(thing("user")));
		await lab.run(alpha.delete(id("target")));
		expect(await alpha.read(id("target"))).toBeUndefined();
		expect(await alpha.shadow(id("target"))).toBeUndefined();
	});

	it("keeps its records outside of namespaces and partitions, whose deletion they must not block", async () => {
		const { lab, alpha } = await oneDeployment();
		await lab.run(alpha.write(thing("target")));
		await lab.run(alpha.write(thing("user", { needs: to("target") })));
		const all = await alpha.backend.countByType();
		expect(all.get("schema.v1.ResourceShadow")).toBeGreaterThan(2);
		const inPartition = await alpha.backend.countByTypeIn({ partition: "default" });
		expect(Object.fromEntries(inPartition)).toEqual({
			"tenancy.v1.Namespace": 1,
			"alpha.v1.Thing": 2,
		});
	});

	it("deletes resources that reference the target with CASCADE", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("b", { belongsTo: to("a") })));
		await lab.run(alpha.write(thing("c", { belongsTo: to("b") })));
		await lab.run(alpha.delete(id("a")));
		await lab.pass(60_000);
		for (const name of ["a", "b", "c"]) {
			expect(await alpha.read(id(name))).toBeUndefined();
			expect(await alpha.shadow(id(name))).toBeUndefined();
		}
		expect(alpha.failures).toEqual([]);
	});

	it("clears UNSET references in any kind of field", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("other")));
		await lab.run(
			alpha.write(
				thing("user", {
					note: "kept",
					likes: [to("a"), to("other"), to("a")],
					labels: { x: to("a"), y: to("other") },
					parts: [{ parts: [{ madeOf: to("a") }] }],
					place: { case: "shelf", value: to("a") },
				}),
			),
		);
		await lab.run(alpha.delete(id("a")));
		await lab.pass(60_000);
		expect(await alpha.read(id("a"))).toBeUndefined();
		const stored = await alpha.read(id("user"));
		const expected = thing("user", {
			note: "kept",
			likes: [to("other")],
			labels: { y: to("other") },
			parts: [{ parts: [{}] }],
		});
		expect(stored?.data).toEqual(expected.data);
	});

	it("deletes a cycle of cascades", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("b", { belongsTo: to("a") })));
		await lab.run(alpha.write(thing("a", { belongsTo: to("b") })));
		await lab.run(alpha.delete(id("a")));
		await lab.pass(60_000);
		expect(await alpha.read(id("a"))).toBeUndefined();
		expect(await alpha.read(id("b"))).toBeUndefined();
	});
});
