import { createHmac, timingSafeEqual } from "node:crypto";

/** The length of a challenge, in bytes. */
export const challengeBytes = 32;

/** What a server sends to prove that it knows a secret: see `plinth.cluster.v1.IdentifyResponse`. */
export function proofOf(secret: string, challenge: Uint8Array): Buffer {
	return createHmac("sha256", secret)
		.update("plinth.cluster.v1.Identify\0")
		.update(challenge)
		.digest();
}

/** Whether a proof shows that its sender knows the secret. */
export function isProof(proof: Uint8Array, secret: string, challenge: Uint8Array): boolean {
	const expected = proofOf(secret, challenge);
	return proof.length === expected.length && timingSafeEqual(proof, expected);
}
