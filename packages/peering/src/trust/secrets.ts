import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A new secret: 32 random bytes as text. */
export function newSecret(): string {
	return randomBytes(32).toString("base64url");
}

/** The SHA-256 of a secret. Secrets are random, so that a hash that leaks does not help to find them. */
export function hashOf(secret: string): Uint8Array<ArrayBuffer> {
	return Uint8Array.from(createHash("sha256").update(secret).digest());
}

/** Whether two hashes are equal, in constant time. Nothing equals an empty one. */
export function isSameHash(a: Uint8Array, b: Uint8Array): boolean {
	return a.length === 32 && b.length === 32 && timingSafeEqual(a, b);
}
