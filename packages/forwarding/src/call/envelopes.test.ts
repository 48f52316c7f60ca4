import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Envelopes, isEnveloped } from "./envelopes.ts";

function enveloped(length: number): Buffer {
	const envelope = Buffer.alloc(5 + length);
	envelope.writeUInt32BE(length, 1);
	return envelope;
}

describe("envelopes", () => {
	it("end where messages end, however the body is cut into chunks", () => {
		fc.assert(
			fc.property(
				fc.array(fc.nat(300), { minLength: 1, maxLength: 10 }),
				fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
				(lengths, sizes) => {
					const body = Buffer.concat(lengths.map(enveloped));
					const ends = new Set([0]);
					let end = 0;
					for (const length of lengths) {
						end += 5 + length;
						ends.add(end);
					}
					const envelopes = new Envelopes();
					for (let position = 0, chunk = 0; position < body.length; chunk += 1) {
						const next = position + (sizes[chunk % sizes.length] ?? 1);
						envelopes.add(body.subarray(position, next));
						position = Math.min(next, body.length);
						expect(envelopes.isAtBoundary).toBe(ends.has(position));
					}
					expect(envelopes.largest).toBe(Math.max(...lengths));
				},
			),
		);
	});

	it("announce lengths up to 4 GiB before the message arrives", () => {
		const envelopes = new Envelopes();
		envelopes.add(Buffer.from([0, 255, 255, 255, 255]));
		expect(envelopes.largest).toBe(2 ** 32 - 1);
		expect(envelopes.isAtBoundary).toBe(false);
	});

	it.each([
		["application/grpc", true],
		["application/grpc+proto", true],
		["application/grpc-web+json", true],
		["application/connect+json", true],
		["application/grpc-web-text", false],
		["application/json", false],
		[undefined, false],
	])("are in bodies of %s: %s", (contentType, expected) => {
		expect(isEnveloped(contentType)).toBe(expected);
	});
});
