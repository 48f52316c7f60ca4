import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
	FileDescriptorSetSchema,
	file_google_protobuf_struct,
	FieldDescriptorProto_Label as Label,
	FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { childOf, type Shape } from "./shape.ts";

const fields = ["one", "many", "notes", "text"];
const shared = { label: Label.OPTIONAL, type: Type.MESSAGE, typeName: ".t.Part" };
const file = create(FileDescriptorSetSchema, {
	file: [
		file_google_protobuf_struct.proto,
		{
			...{ name: "t.proto", package: "t", syntax: "proto3" },
			dependency: [file_google_protobuf_struct.proto.name],
			messageType: [
				{
					name: "Whole",
					field: [
						{ ...shared, name: "one", number: 1 },
						{ ...shared, name: "many", number: 2, label: Label.REPEATED },
						{ ...shared, name: "notes", number: 3, typeName: ".google.protobuf.Struct" },
						{ name: "text", number: 4, label: Label.OPTIONAL, type: Type.STRING },
					],
				},
				{
					name: "Part",
					field: [{ name: "size", number: 1, label: Label.OPTIONAL, type: Type.UINT32 }],
				},
			],
			sourceCodeInfo: {
				location: [
					...fields.map((name, at) => ({
						path: [4, 0, 2, at],
						span: [at, 0, 1],
						leadingComments: ` The ${name}.`,
					})),
					{ path: [4, 1, 2, 0], span: [9, 0, 1], leadingComments: " The size." },
				],
			},
		},
	],
});

const message = createFileRegistry(file).getMessage("t.Whole");

const whole: Shape | undefined = message && { message, isMany: false };

it("the fields of a message have their comments", () => {
	expect(fields.map((name, at) => childOf(whole, name, at).comment)).toEqual([
		"The one.",
		"The many.",
		"The notes.",
		"The text.",
	]);
});

it("the fields of a message within it have theirs", () => {
	expect(childOf(childOf(whole, "one", 0).shape, "size", 0).comment).toBe("The size.");
});

it("of a list, the fields of the first element have comments", () => {
	const { shape } = childOf(whole, "many", 1);
	expect(childOf(shape, "0", 0).comment).toBe(undefined);
	expect(childOf(childOf(shape, "0", 0).shape, "size", 0).comment).toBe("The size.");
	expect(childOf(shape, "1", 1)).toEqual({});
});

it("JSON that does not have the fields of a message has no comments", () => {
	expect(childOf(whole, "notes", 2).shape).toBe(undefined);
	expect(childOf(whole, "__proto__", 0)).toEqual({});
	expect(childOf(undefined, "one", 0)).toEqual({});
});
