import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { DeleteRequestSchema, WriteRequestSchema, WriteStatusRequestSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { isConditional, type WriteMethod } from "./write-condition.ts";

function judge(method: WriteMethod, contentType: string, body: Uint8Array | string): boolean {
	const header = (name: string) => (name === "content-type" ? contentType : undefined);
	return isConditional(method, { header }, Buffer.from(body));
}

const write = (init: Parameters<typeof create<typeof WriteRequestSchema>>[1]) =>
	toBinary(WriteRequestSchema, create(WriteRequestSchema, init));

describe("a write has a condition", () => {
	it.each([
		[{ resource: { id: { name: "a" }, version: "7" } }, true],
		[{ resource: { id: { name: "a" } }, createOnly: true }, true],
		[{ resource: { id: { name: "a" }, generation: "7" } }, false],
		[{ resource: { id: { name: "a" }, version: "" }, createOnly: false }, false],
		[{}, false],
	])("in Write, %j: %s", (request, expected) => {
		expect(judge("Write", "application/proto", write(request))).toBe(expected);
		expect(judge("Write", "application/grpc", encodeEnvelope(0, write(request)))).toBe(expected);
		expect(judge("Write", "application/json", JSON.stringify(request))).toBe(expected);
	});

	it.each([
		["7", true],
		["", false],
	])("in WriteStatus and Delete, with the version %j: %s", (version, expected) => {
		const status = create(WriteStatusRequestSchema, { id: { uid: "u" }, version, key: "k" });
		const bytes = toBinary(WriteStatusRequestSchema, status);
		expect(judge("WriteStatus", "application/proto", bytes)).toBe(expected);
		const deletion = create(DeleteRequestSchema, { id: { uid: "u" }, version, dryRun: true });
		expect(judge("Delete", "application/proto", toBinary(DeleteRequestSchema, deletion))).toBe(
			expected,
		);
		expect(judge("Delete", "application/json", JSON.stringify({ version }))).toBe(expected);
	});

	it("by the last occurrence of a field", () => {
		const conditional = write({ resource: { version: "7" }, createOnly: true });
		const version = write({ resource: { version: "7" } });
		const cleared = Buffer.from([0x0a, 2, 0x1a, 0, 0x10, 0]);
		const both = (...parts: Uint8Array[]) =>
			judge("Write", "application/proto", Buffer.concat(parts));
		expect(both(conditional, cleared)).toBe(false);
		expect(both(cleared, version)).toBe(true);
		// What an occurrence of a message does not have remains as it is.
		expect(both(version, write({ resource: { id: { name: "a" } } }))).toBe(true);
	});

	it("but not if it can't be read", () => {
		const conditional = write({ resource: { version: "7" } });
		expect(judge("Write", "application/grpc", encodeEnvelope(1, conditional))).toBe(false);
		expect(judge("Write", "application/json", "{")).toBe(false);
		expect(judge("Write", "application/json", "null")).toBe(false);
		expect(judge("Write", "application/proto", Buffer.from([0xff]))).toBe(false);
		expect(judge("Write", "application/json", '{"create_only":true}')).toBe(true);
	});
});
