import type { DescMessage } from "@bufbuild/protobuf";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, SourceCodeInfoSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import {
	Device_Room_KindSchema,
	Device_RoomSchema,
	DeviceSchema,
	GetRequestSchema,
	GetResponseSchema,
	StateSchema,
} from "../testdata/gen/commented/v1/commented_pb.ts";
import { commentOf } from "./comment-of.ts";
import { longestComment } from "./comment-text.ts";

/** The comments of the fields of a message. */
function fieldsOf(message: DescMessage): Readonly<Record<string, string | undefined>> {
	return Object.fromEntries(message.fields.map((field) => [field.name, commentOf(field)]));
}

/** What is shown of a comment of a message. */
function shown(leadingComments: string, trailingComments = ""): string | undefined {
	const location = [{ path: [4, 0], span: [0, 0, 1], leadingComments, trailingComments }];
	const file = {
		name: "shown.proto",
		messageType: [{ name: "Shown" }],
		sourceCodeInfo: create(SourceCodeInfoSchema, { location }),
	};
	const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] }));
	const message = registry.getMessage("Shown");
	return message && commentOf(message);
}

describe("the comments in generated code", () => {
	it("are those before a declaration, or else after it", () => {
		expect(fieldsOf(DeviceSchema)).toEqual({
			name: "Before the name.",
			size: "After the size.",
			plain: undefined,
			ports: "In a block.",
			rack: "A rack.",
			room: undefined,
			state: "Its state.",
			hostile: '<script>alert(1)</script>\n  fileDesc("AAAA")',
		});
	});

	it("are also those of messages, oneofs, enums and values, nested or not", () => {
		expect(commentOf(DeviceSchema)).toBe(
			"Device is a machine, wherever it is.\n\nIt has:\n- a name\n- a size",
		);
		expect(DeviceSchema.oneofs.map(commentOf)).toEqual(["Where it is."]);
		expect(commentOf(Device_RoomSchema)).toBe("Room is within.");
		expect(fieldsOf(Device_RoomSchema)).toEqual({
			number: "The number at its door.",
			kind: undefined,
		});
		expect(commentOf(Device_Room_KindSchema)).toBe("Kind of a room.");
		expect(Device_Room_KindSchema.values.map(commentOf)).toEqual(["Nobody said."]);
		expect(commentOf(StateSchema)).toBe("State of a device.");
		expect(StateSchema.values.map(commentOf)).toEqual([undefined, "It runs."]);
	});

	it("are not those of requests and responses", () => {
		expect([GetRequestSchema, GetResponseSchema].map(commentOf)).toEqual([undefined, undefined]);
		expect([fieldsOf(GetRequestSchema), fieldsOf(GetResponseSchema)]).toEqual([
			{ name: undefined },
			{ device: undefined },
		]);
	});
});

describe("a comment in a descriptor", () => {
	it("is missing in a descriptor without source information", () => {
		const [message] = SourceCodeInfoSchema.file.messages;
		expect(message && commentOf(message)).toBeUndefined();
	});

	it("is shortened, and ends with a whole letter", () => {
		expect(shown("x".repeat(longestComment))).toHaveLength(longestComment);
		expect(shown("x".repeat(1_000_000))).toBe(`${"x".repeat(longestComment - 1)}…`);
		expect(shown(`${"x".repeat(longestComment - 2)}😀😀`)).toBe(
			`${"x".repeat(longestComment - 2)}…`,
		);
	});

	it("is none if it consists of spaces or instructions to a linter", () => {
		expect(shown(" \n\t\n", " After.\n")).toBe("After.");
		expect(shown(" buf:lint:ignore ENUM_ZERO_VALUE_SUFFIX\r\n")).toBeUndefined();
	});

	it("keeps lines that are not those of a paragraph", () => {
		expect(shown(" One\r\n two\r\n\r\n three\r\n   four\r\n 1. five\r\n 10 s\r\n")).toBe(
			"One two\n\nthree\n  four\n1. five 10 s",
		);
	});
});
