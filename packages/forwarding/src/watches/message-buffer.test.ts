import { encodeEnvelope } from "@connectrpc/connect/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeptBytes } from "../call/kept-bytes.ts";
import { MessageBuffer, messageOf } from "./message-buffer.ts";

function chunksOf(body: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
	const ends = [...new Set([...cuts.map((cut) => cut % (body.length + 1)), body.length])].sort(
		(a, b) => a - b,
	);
	return ends.map((end, index) => body.subarray(ends[index - 1] ?? 0, end));
}

describe("a message buffer", () => {
	it("returns each message when it is complete, wherever chunks end", () => {
		fc.assert(
			fc.property(
				fc.array(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 40 })), { minLength: 1 }),
				fc.array(fc.nat(10_000)),
				(messages, cuts) => {
					const memory = new KeptBytes(1_000);
					const buffer = new MessageBuffer(1_000, memory);
					const body = Buffer.concat(messages.map(([flags, data]) => encodeEnvelope(flags, data)));
					const pieces = chunksOf(body, cuts).flatMap((chunk) => buffer.add(chunk));
					expect(
						pieces.map((piece) => [
							piece.kind === "message" && piece.flags,
							Buffer.from(messageOf(piece)).toString("hex"),
						]),
					).toEqual(messages.map(([flags, data]) => [flags, Buffer.from(data).toString("hex")]));
					expect(memory.take(1_000)).toBe(true);
				},
			),
		);
	});

	it("passes a message in parts that is too large, or for which there is no room", () => {
		const memory = new KeptBytes(30);
		const large = encodeEnvelope(0, new Uint8Array(40));
		for (const limit of [20, 100]) {
			const buffer = new MessageBuffer(limit, memory);
			expect(buffer.add(large.subarray(0, 7))).toMatchObject([{ kind: "part" }]);
			expect(buffer.isAtBoundary).toBe(false);
			const rest = Buffer.concat([large.subarray(7), encodeEnvelope(0, new Uint8Array(1))]);
			expect(buffer.add(rest)).toMatchObject([{ kind: "part" }, { kind: "message" }]);
			expect(buffer.isAtBoundary).toBe(true);
		}
	});

	it("returns its memory when it is released", () => {
		const memory = new KeptBytes(50);
		const buffer = new MessageBuffer(50, memory);
		expect(buffer.add(encodeEnvelope(0, new Uint8Array(45)).subarray(0, 20))).toEqual([]);
		expect(memory.take(1)).toBe(false);
		buffer.release();
		expect(memory.take(50)).toBe(true);
	});
});
