import { create, type MessageInitShape, setExtension } from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FileOptionsSchema,
	OneofOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
	FieldRulesSchema,
	field as fieldRules,
	OneofRulesSchema,
	oneof as oneofRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import {
	OnDelete,
	ServiceVersionSchema,
	service,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Partition, referenceTo } from "@plinth/resource";
import { describe, expect, it, vi } from "vitest";
import { otherThing, thingReferencing } from "../../testdata/other-thing.ts";
import { Thing, ThingSchema, Widget } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { inVersion2 } from "../simulation/schemas.fixture.ts";
import { referenceProblems } from "./reference-fields.ts";
import { DescriptorError, ServiceDescriptor } from "./service-descriptor.ts";

const descriptor = new ServiceDescriptor({ types: [Thing] });

/** The type Thing of a file with another option. */
function thingOf(option: MessageInitShape<typeof ServiceVersionSchema>) {
	return otherThing((file) => {
		const options = create(FileOptionsSchema);
		setExtension(options, service, create(ServiceVersionSchema, option));
		file.options = options;
	});
}

/** The type Thing whose fields `needs`, `likes` and `labels`, and whose oneof `place`, have rules of validation. */
function thingWithRules({
	place,
	...fields
}: Partial<Record<"needs" | "likes" | "labels", MessageInitShape<typeof FieldRulesSchema>>> & {
	readonly place?: MessageInitShape<typeof OneofRulesSchema>;
}) {
	return otherThing((file) => {
		const [thing] = file.messageType;
		for (const field of thing?.field ?? []) {
			const rules = new Map(Object.entries(fields)).get(field.name);
			if (field.options !== undefined && rules !== undefined) {
				setExtension(field.options, fieldRules, create(FieldRulesSchema, rules));
			}
		}
		const [oneof] = thing?.oneofDecl ?? [];
		if (oneof !== undefined && place !== undefined) {
			oneof.options = create(OneofOptionsSchema);
			setExtension(oneof.options, oneofRules, create(OneofRulesSchema, place));
		}
	});
}

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

	it("knows the version from the files' options, or from the package", () => {
		expect(descriptor.versions).toEqual(["v1"]);
		const named = thingOf({ service: "alpha", version: "v7" });
		expect(new ServiceDescriptor({ types: [named] }).versions).toEqual(["v7"]);
	});

	it("refuses options that name no service", () => {
		expect(() => new ServiceDescriptor({ types: [thingOf({ version: "v1" })] })).toThrow(
			"acme/alpha/v1/thing.proto: (plinth.schema.v1.service).service is required",
		);
	});

	it("merges the imports of all files, and of all versions", () => {
		const gamma = { service: "gamma", version: "v1", groups: ["blue", "red"] };
		const delta = { service: "delta", version: "v1", groups: ["delta"] };
		const more = { service: "gamma", version: "v2", groups: ["blue", "green"] };
		const merged = { ...more, groups: ["blue", "green", "red"] };
		const [one, same, later] = [
			thingOf({ service: "alpha", imports: [gamma, delta] }),
			thingOf({ service: "alpha", imports: [more] }),
			thingOf({ service: "alpha", version: "v2", imports: [more] }),
		];
		const files = new ServiceDescriptor({ types: [one, same] });
		expect(files.imports("v1")).toEqual([delta, merged]);
		const versions = new ServiceDescriptor({ types: [one, later] });
		expect(versions.imports("v1")).toEqual([delta, gamma]);
		expect(versions.imports("v2")).toEqual([more]);
		expect(versions.imports()).toEqual([delta, merged]);
		expect(versions.serviceOfGroup("green")).toBe("gamma");
	});

	it("says of references that can't be cleared why", () => {
		const required = thingWithRules({ needs: { required: true } });
		const thing = create(ThingSchema, {
			needs: referenceTo({ name: "a" }),
			belongsTo: referenceTo({ name: "b" }),
		});
		const found = new ServiceDescriptor({ types: [required] }).referencesOf(
			make(Thing, "t", thing),
		);
		expect(found.map(({ path, notClearable }) => [path, notClearable])).toEqual([
			["needs", "is required"],
			["belongs_to", undefined],
		]);
	});

	it("refuses UNSET for references that can't be cleared", () => {
		const thing = thingWithRules({
			likes: { type: { case: "repeated", value: { minItems: 2n } } },
			labels: { type: { case: "map", value: { minPairs: 3n } } },
			place: { required: true },
		});
		const unset = "(plinth.schema.v1.reference).on_delete can't be UNSET: the field";
		expect(referenceProblems(thing.schema)).toEqual([
			`field acme.alpha.v1.Thing.likes: ${unset} needs at least 2 elements`,
			`field acme.alpha.v1.Thing.labels: ${unset} needs at least 3 entries`,
			`field acme.alpha.v1.Thing.shelf: ${unset} is part of place, which is required`,
		]);
		const none = thingWithRules({
			likes: { type: { case: "repeated", value: { maxItems: 2n } } },
			labels: { type: { case: "map", value: { maxPairs: 3n } } },
			place: { required: false },
		});
		expect(referenceProblems(none.schema)).toEqual([]);
	});

	it("clears no references of a type that is not registered, or of data that can't be decoded", () => {
		const likes = [referenceTo({ name: "a" })];
		const thing = make(Thing, "t", create(ThingSchema, { likes }));
		const cleared = descriptor.without(thing, () => true);
		expect(cleared?.data).toMatchObject({ likes: [] });
		const other = new ServiceDescriptor({ types: [Widget], foreignTypes: [Thing] });
		expect(other.without(thing, () => true)).toBeUndefined();
		const data = thing.data && { ...thing.data, value: Uint8Array.of(0x0a, 0x7f, 1) };
		expect(descriptor.without({ ...thing, ...(data && { data }) }, () => true)).toBeUndefined();
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

	it.each<[string, Parameters<typeof otherThing>[0]]>([
		[
			"a field that leads to references",
			(file) => {
				const part = file.messageType[0]?.nestedType.find(({ name }) => name === "Part");
				Object.assign(part ?? {}, { field: part?.field.filter(({ name }) => name !== "parts") });
			},
		],
		[
			"the number of a field",
			(file) => Object.assign(file.messageType[0]?.field[1] ?? {}, { number: 30 }),
		],
		[
			"a list in the place of one reference",
			(file) => {
				const label = FieldDescriptorProto_Label.REPEATED;
				Object.assign(file.messageType[0]?.field[1] ?? {}, { label });
			},
		],
		[
			"a oneof",
			(file) => {
				const [message] = file.messageType;
				for (const field of message?.field.filter(({ name }) => /shelf|elsewhere/.test(name)) ??
					[]) {
					Reflect.deleteProperty(field, "oneofIndex");
				}
				Object.assign(message ?? {}, { oneofDecl: [] });
			},
		],
	])("changes its fingerprint with %s", (_what, change) => {
		const other = new ServiceDescriptor({ types: [otherThing(change)] });
		expect(other.fingerprint).not.toBe(descriptor.fingerprint);
	});

	it("has its versions in the order of their age", () => {
		const types = ["v10", "v1beta1", "v9", "v1"].map((version) =>
			thingOf({ service: "alpha", version }),
		);
		const { versions } = new ServiceDescriptor({ types, service: "alpha" });
		expect(versions).toEqual(["v1beta1", "v1", "v9", "v10"]);
	});

	it("has a fingerprint that neither the order of types changes, nor one without references", () => {
		const types = [Thing, inVersion2(Thing)];
		const { fingerprint } = new ServiceDescriptor({ types, service: "alpha" });
		const more = [...types.toReversed(), Partition];
		expect(new ServiceDescriptor({ types: more, service: "alpha" }).fingerprint).toBe(fingerprint);
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
