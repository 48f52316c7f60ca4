import { malformed } from "../errors/refusal.ts";

/** Encodes the parts of the name after which a page begins, for a page token. */
export function encodePosition(parts: readonly string[]): string {
	return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/**
 * The parts that were encoded.
 *
 * @param counts - how many there may be.
 * @throws ConnectError InvalidArgument if there are others.
 */
export function decodePosition(encoded: string, ...counts: readonly number[]): readonly string[] {
	let parts: unknown;
	try {
		parts = JSON.parse(Buffer.from(encoded, "base64url").toString());
	} catch {
		// Not JSON: malformed, like any value that is not a position.
	}
	if (
		!Array.isArray(parts) ||
		!counts.includes(parts.length) ||
		!parts.every((part) => typeof part === "string")
	) {
		throw malformed("page_token", "was not returned by a list");
	}
	return parts;
}
