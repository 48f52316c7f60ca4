import { describe, expect, it } from "vitest";
import { RequestBody } from "./request-body.ts";
import type { HttpRequest } from "./request-handler.ts";

const socketBytes = 64 * 1024;

/** A request whose body arrives in parts of this size, each with other bytes from the socket around it. */
function requestOf(partBytes: number, parts: number): HttpRequest {
	let left = parts;
	return {
		...{ httpVersion: "2.0", method: "POST", target: "/", url: "http://x/", authority: "x" },
		...{ hasOneHost: true, isGone: false, hasArrived: true, isLost: false },
		connection: {
			...{ isMultiplexed: true, isEncrypted: false, remoteAddress: "" },
			...{ onceClosed: () => {}, ping: () => {}, destroy: () => {} },
		},
		get isRead() {
			return left === 0;
		},
		header: () => undefined,
		headers: () => [],
		read: () => {
			if (left === 0) {
				return undefined;
			}
			left -= 1;
			return Buffer.allocUnsafeSlow(socketBytes)
				.fill(left)
				.subarray(9, 9 + partBytes);
		},
		discard: () => {},
		listenToBody: () => {},
	};
}

describe("the chunks of a body", () => {
	it.each([1, 1_000, 4_096, 16_000, 17_000, 60_000])(
		"keep at most four times the memory of their bytes, after the first: parts of %i bytes",
		async (partBytes) => {
			const body = new RequestBody(requestOf(partBytes, 10), () => {});
			const chunks: Uint8Array[] = [];
			for await (const chunk of body) {
				chunks.push(chunk);
			}
			expect(chunks.map((chunk) => new Set(chunk))).toEqual(
				[9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map((byte) => new Set([byte])),
			);
			const [first, ...others] = new Set(chunks.map(({ buffer }) => buffer.byteLength));
			expect(first).toBe(socketBytes);
			expect(Math.max(...others, partBytes)).toBeLessThanOrEqual(4 * partBytes);
			expect(chunks.every(({ byteLength }) => byteLength === partBytes)).toBe(true);
		},
	);
});
