import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { ListValueSchema, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { sharedEnvelope, shareEncodings } from "./shared-encodings.ts";

describe("a message with shared encodings", () => {
	const binary = {};
	const json = {};

	it("is encoded once per encoding, however often it is sent", () => {
		const message = shareEncodings(create(StringValueSchema, { value: "to all" }));
		const encoded: string[] = [];
		const send = () => [
			sharedEnvelope(message, binary, (sent) => {
				encoded.push("binary");
				return toBinary(StringValueSchema, sent);
			}),
			sharedEnvelope(message, json, (sent) => {
				encoded.push("JSON");
				return Buffer.from(toJsonString(StringValueSchema, sent));
			}),
		];
		const first = send();
		expect(send().map((bytes, index) => bytes === first[index])).toEqual([true, true]);
		expect(encoded).toEqual(["binary", "JSON"]);
	});

	it("does not lend them to others: a message that is not shared, or a copy", () => {
		const message = shareEncodings(create(ListValueSchema, {}));
		const encode = () => new Uint8Array([1]);
		expect(sharedEnvelope(message, binary, encode)).toBeDefined();
		expect(sharedEnvelope({ ...message }, binary, encode)).toBeUndefined();
		expect(sharedEnvelope(create(ListValueSchema, {}), binary, encode)).toBeUndefined();
	});

	it("keeps them when it is shared again", () => {
		const message = shareEncodings(create(ListValueSchema, {}));
		const first = sharedEnvelope(message, binary, () => new Uint8Array([1]));
		shareEncodings(message);
		expect(sharedEnvelope(message, binary, () => new Uint8Array([2]))).toBe(first);
	});
});
