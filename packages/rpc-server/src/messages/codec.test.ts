import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { ResourceSchema, ResourceService, WriteRequestSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { createCodecs } from "./codec.ts";

const limits = { readMaxBytes: 1_024, writeMaxBytes: 1_024 };

describe("a decoded message", () => {
	const value = Uint8Array.of(1, 2, 3);
	const request = create(WriteRequestSchema, { resource: { data: { typeUrl: "a/b", value } } });
	const withUnknownField = create(WriteRequestSchema, {
		resource: create(ResourceSchema, { data: { typeUrl: "a/b", value } }),
	});
	withUnknownField.$unknown = [{ no: 1_000, wireType: 0, data: Uint8Array.of(1) }];
	const binary = createCodecs(ResourceService.method.write, limits).binary;
	const configured = createCodecs(ResourceService.method.write, { ...limits, binaryOptions: {} });
	const { json } = configured;
	const versioned = create(WriteRequestSchema, { resource: { version: "7" } });
	const inJson = toJsonString(WriteRequestSchema, versioned);

	it.each([
		["compiled", binary, toBinary(WriteRequestSchema, request), request],
		[
			"with unknown fields",
			binary,
			toBinary(WriteRequestSchema, withUnknownField),
			withUnknownField,
		],
		["with options", configured.binary, toBinary(WriteRequestSchema, request), request],
		["JSON", json, Buffer.from(inJson), versioned],
	] as const)("shares no memory with its bytes: %s", (_name, codec, bytes, expected) => {
		const decoded = codec.decode(bytes);
		bytes.fill(0);
		expect(decoded).toStrictEqual(expected);
	});
});
