import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
	FileDescriptorProtoSchema,
	file_google_protobuf_struct,
	file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import { StatusSchema } from "@plinth/proto";
import { ExportSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Export } from "../types.ts";
import { compileMask } from "./field-mask.ts";

function exampleOf() {
	const types = [
		{ namePrefixes: ["a"], maskedFields: ["data.x"], type: { group: "g", kind: "K" } },
		{ namePrefixes: ["b"] },
	];
	const data = create(ExportSchema, { partition: "p", peers: ["one"], types });
	const resource = resourceOf(Export, { id: idOf(Export, "x"), data });
	resource.metadata = { kept: "1", "a.b": "2" };
	resource.status = { mine: create(StatusSchema), other: create(StatusSchema) };
	return resource;
}

function masked(...paths: readonly string[]) {
	const compiled = compileMask(ExportSchema, paths);
	if ("problem" in compiled) {
		throw new Error(compiled.problem);
	}
	const resource = exampleOf();
	compiled.mask(resource);
	return { resource, data: decode(Export, resource).data };
}

describe("a field mask", () => {
	it("removes fields, also within repeated messages, and leaves the others", () => {
		const { data } = masked("data.partition", "data.types.name_prefixes", "data.types.type.kind");
		expect(data).toMatchObject({
			partition: "",
			peers: ["one"],
			types: [
				{ namePrefixes: [], maskedFields: ["data.x"], type: { group: "g", kind: "" } },
				{ namePrefixes: [] },
			],
		});
		expect(data.types[1]?.type).toBeUndefined();
	});

	it("removes entries of the metadata and statuses, or all", () => {
		const { resource } = masked("metadata.a.b", "status.mine");
		expect(resource.metadata).toEqual({ kept: "1" });
		expect(Object.keys(resource.status)).toEqual(["other"]);
		expect(masked("metadata", "status").resource).toMatchObject({ metadata: {}, status: {} });
	});

	it.each([
		["data", '"data" must be data. with the path of a field, metadata or status'],
		["owner", '"owner" must be data. with the path of a field, metadata or status'],
		["data.nope", 'data.nope: plinth.peering.v1.Export has no field "nope"'],
		["data.partition.x", "data.partition.x: partition has no fields"],
	])("is refused for %s", (path, problem) => {
		expect(compileMask(ExportSchema, [path])).toEqual({ problem });
	});

	it.each([
		["data.token.value", "google.protobuf.StringValue", "token"],
		["data.config.fields", "google.protobuf.Struct", "config"],
		["data.config.fields.string_value", "google.protobuf.Struct", "config"],
	])("is refused for %s, whose message can only be masked as a whole", (path, message, field) => {
		const problem = `${path}: a field of ${message} can't be masked alone: mask ${field} as a whole`;
		expect(compileMask(secretSchema(), [path])).toEqual({ problem });
		expect(compileMask(secretSchema(), [`data.${field}`])).toHaveProperty("mask");
	});
});

/** A message with fields of the types of protobuf that a decoded message has in another form. */
function secretSchema() {
	const files = [file_google_protobuf_struct.proto, file_google_protobuf_wrappers.proto];
	const field = (name: string, number: number, typeName: string) => ({
		...{ name, number, typeName, jsonName: name },
		...{ type: 11, label: 1 },
	});
	const file = create(FileDescriptorProtoSchema, {
		...{ name: "secret.proto", package: "test", syntax: "proto3" },
		dependency: files.map(({ name }) => name),
		messageType: [
			{
				name: "Secret",
				field: [
					field("token", 1, ".google.protobuf.StringValue"),
					field("config", 2, ".google.protobuf.Struct"),
				],
			},
		],
	});
	const registry = createFileRegistry(file, (name) => files.find((each) => each.name === name));
	const schema = registry.getMessage("test.Secret");
	if (schema === undefined) {
		throw new Error("the schema is missing");
	}
	return schema;
}
