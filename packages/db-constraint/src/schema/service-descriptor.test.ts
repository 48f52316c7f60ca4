import { create } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { referenceTo } from "@plinth/resource";
import { describe, expect, it, vi } from "vitest";
import { otherThing, thingReferencing } from "../../testdata/other-thing.ts";
import { Thing, ThingSchema, Widget } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { referenceProblems } from "./reference-fields.ts";
import { DescriptorError, ServiceDescriptor } from "./service-descriptor.ts";

const descriptor = new ServiceDescriptor({ types: [Thing] });

describe("a service descriptor", () => {
	it("knows service, versions and imports from the files' options", () => {
		const beta = new ServiceDescriptor({ types: [Widget], foreignTypes: [Thing] });
		expect(beta.service).toBe("beta");
		expect(beta.versions).toEqual(["v1"]);
		expect(beta.imports("v1")).toEqual([{ service: "alpha", version: "v1", groups: ["alpha"] }]);
		expect(beta.serviceOfGroup("alpha")).toBe("alpha");
		expect(beta.serviceOfGroup("beta")).toBe("");
		expect(beta.serviceOfGroup("gamma")).toBeUndefined();
	});

	it("finds references in every kind of field, and fills in defaults", () => {
		const to = (name: string) => referenceTo({ name });
		const thing = create(ThingSchema, {
			needs: to("a"),
			likes: [to("b"), to("c")],
			labels: { x: to("d") },
			parts: [{ parts: [{ madeOf: to("e") }] }],
			place: { case: "shelf", value: to("f") },
			belongsTo: to(""),
		});
		const found = descriptor.referencesOf(make(Thing, "t", thing));
		expect(found.map(({ path, target, rule }) => [path, target.name, rule])).toEqual([
			["needs", "a", OnDelete.BLOCK],
			["likes", "b", OnDelete.UNSET],
			["likes", "c", OnDelete.UNSET],
			['labels["x"]', "d", OnDelete.UNSET],
			["parts.parts.made_of", "e", OnDelete.UNSET],
			["shelf", "f", OnDelete.UNSET],
		]);
		expect(found[0]?.target).toMatchObject({
			partition: "default",
			namespace: "default",
			region: "",
		});
	});

	it("changes its fingerprint with a rule", () => {
		const same = new ServiceDescriptor({ types: [otherThing(() => {})] });
		expect(same.fingerprint).toBe(descriptor.fingerprint);
		const without = otherThing((file) => {
			delete file.messageType[0]?.field[1]?.options;
		});
		const other = new ServiceDescriptor({ types: [without] });
		expect(other.fingerprint).not.toBe(descriptor.fingerprint);
	});

	it("changes its fingerprint with the protocol", async () => {
		vi.resetModules();
		vi.doMock("./protocol-revision.ts", () => ({ protocolRevision: 1_000 }));
		const later = await import("./service-descriptor.ts");
		vi.doUnmock("./protocol-revision.ts");
		const same = new later.ServiceDescriptor({ types: [otherThing(() => {})] });
		expect(same.fingerprint).not.toBe(descriptor.fingerprint);
	});

	it("refuses types of several services, and references to types of unknown services", () => {
		expect(() => new ServiceDescriptor({ types: [Thing, Widget] })).toThrow(
			"the types belong to several services (alpha, beta): name the one that is deployed",
		);
		const lost = thingReferencing(new Map([[1, "gamma.v1.Thing"]]));
		expect(() => new ServiceDescriptor({ types: [lost] })).toThrow(
			"field acme.alpha.v1.Thing.needs: references gamma.v1.Thing, but no type of the group gamma is registered",
		);
	});

	it("reports all invalid references at once, with the type, the field and the reason", () => {
		const lost = thingReferencing(
			new Map([
				[1, "gamma.v1.Thing"],
				[2, "alpha.v1.Thong"],
			]),
		);
		expect(() => new ServiceDescriptor({ types: [lost] })).toThrow(
			new DescriptorError([
				"type alpha.v1.Thing: field acme.alpha.v1.Thing.belongs_to: references alpha.v1.Thong, which is not registered",
				"type alpha.v1.Thing: field acme.alpha.v1.Thing.needs: references gamma.v1.Thing, but no type of the group gamma is registered: register the type, or, if another service has it, name that in the imports of (plinth.schema.v1.service)",
			]),
		);
		const malformed = thingReferencing(
			new Map([
				[1, "alpha.v1_Thing"],
				[2, "alpha.v1.Th.ng"],
			]),
		);
		expect(referenceProblems(malformed.schema)).toEqual([
			'field acme.alpha.v1.Thing.needs: (plinth.schema.v1.reference).type must be as in demo.v2.Artist, not "alpha.v1_Thing"',
			'field acme.alpha.v1.Thing.belongs_to: (plinth.schema.v1.reference).type must be as in demo.v2.Artist, not "alpha.v1.Th.ng"',
		]);
	});
});
