import {
	create,
	createFileRegistry,
	type DescMessage,
	fromBinary,
	fromJson,
	type JsonValue,
	type Message,
	type MessageInitShape,
	toBinary,
} from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	type FieldDescriptorProtoSchema,
	FieldOptions_JSType,
	FileDescriptorSetSchema,
	file_google_protobuf_struct,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { compileDecoder } from "./compile-decoder.ts";
import { compileEncoder } from "./compile-encoder.ts";

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;

const { OPTIONAL, REQUIRED, REPEATED } = FieldDescriptorProto_Label;
const { ENUM, INT64, MESSAGE, STRING, UINT64 } = FieldDescriptorProto_Type;

/** A message type with these fields, from descriptors of its own, as of a module with its own copy of the library. */
function typeWith(syntax: "proto2" | "proto3", ...fields: readonly FieldInit[]): DescMessage {
	const set = create(FileDescriptorSetSchema, {
		file: [
			file_google_protobuf_struct.proto,
			{
				...{ name: "own.proto", package: "own", syntax },
				dependency: [file_google_protobuf_struct.proto.name],
				messageType: [
					{ name: "Own", field: fields.map((field) => ({ label: OPTIONAL, ...field })) },
				],
				enumType: [
					{
						name: "From7",
						value: [
							{ name: "SEVEN", number: 7 },
							{ name: "ZERO", number: 0 },
						],
					},
				],
			},
		],
	});
	const type = createFileRegistry(set).getMessage("own.Own");
	if (type === undefined) {
		throw new Error("the type is missing");
	}
	return type;
}

function decode(type: DescMessage, bytes: Uint8Array): Message {
	return compileDecoder(type, { copiesBytes: true })(bytes) ?? fromBinary(type, bytes);
}

function encode(type: DescMessage, message: Message): Uint8Array {
	return new Uint8Array(compileEncoder(type)(message) ?? toBinary(type, message));
}

const struct = { type: MESSAGE, typeName: ".google.protobuf.Struct" } as const;

describe("generated code for a type with descriptors of its own", () => {
	it.each<[string, readonly FieldInit[], JsonValue]>([
		["a JSON object", [{ name: "a", number: 1, ...struct }], { a: { b: "c" } }],
		["an empty one", [{ name: "a", number: 1, ...struct }], { a: {} }],
		["a list of them", [{ name: "a", number: 1, ...struct, label: REPEATED }], { a: [{ b: "c" }] }],
		[
			"one that looks like a message",
			[{ name: "a", number: 1, ...struct }],
			{ a: { $typeName: "google.protobuf.Struct", fields: {} } },
		],
		[
			"integers as strings, which are absent",
			[
				{ name: "a", number: 1, type: STRING },
				{ name: "b", number: 2, type: INT64, options: { jstype: FieldOptions_JSType.JS_STRING } },
				{ name: "c", number: 3, type: UINT64, options: { jstype: FieldOptions_JSType.JS_STRING } },
			],
			{ a: "x" },
		],
		[
			"integers as strings",
			[{ name: "b", number: 2, type: INT64, options: { jstype: FieldOptions_JSType.JS_STRING } }],
			{ b: "5" },
		],
		[
			"an enum whose first value is not 0, as is",
			[{ name: "a", number: 1, type: ENUM, typeName: ".own.From7" }],
			{},
		],
		[
			"an enum whose first value is not 0, set to 0",
			[{ name: "a", number: 1, type: ENUM, typeName: ".own.From7" }],
			{ a: "ZERO" },
		],
	])("does as the library, with %s", (_name, fields, json) => {
		const type = typeWith("proto3", ...fields);
		const message = fromJson(type, json);
		const bytes = toBinary(type, message);
		expect(encode(type, message)).toEqual(bytes);
		expect(decode(type, bytes)).toStrictEqual(fromBinary(type, bytes));
	});

	it("refuses a message without a required one", () => {
		const type = typeWith("proto2", { name: "a", number: 1, ...struct, label: REQUIRED });
		const other = typeWith("proto2", {
			...{ name: "a", number: 1, type: MESSAGE, typeName: ".own.Own", label: REQUIRED },
		});
		expect(() => encode(type, create(type))).toThrow("required field not set");
		expect(() => encode(other, create(other))).toThrow("required field not set");
	});
});
