import {
	createLocalJWKSet,
	createRemoteJWKSet,
	errors,
	type JSONWebKeySet,
	type JWTVerifyGetKey,
} from "jose";
import { z } from "zod";

const keySet = z.object({
	keys: z.array(z.looseObject({ kty: z.string() })).min(1),
});

/**
 * The keys of a JSON Web Key Set.
 *
 * @param file its name, for messages.
 * @throws Error where it is none.
 */
export function keysOf(file: string, text: string): JWTVerifyGetKey {
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch (cause) {
		throw new Error(`${file}: is not JSON`, { cause });
	}
	if (!isKeySet(value)) {
		throw new Error(`${file}: is not a JSON Web Key Set: { "keys": [ … ] }`);
	}
	return createLocalJWKSet(value);
}

function isKeySet(value: unknown): value is JSONWebKeySet {
	return keySet.safeParse(value).success;
}

/** The keys at an address: fetched when they are needed, kept for ten minutes. */
export function keysAt(url: URL): JWTVerifyGetKey {
	return createRemoteJWKSet(url, { timeoutDuration: 5_000, cooldownDuration: 10_000 });
}

/** Whether the token was refused, rather than that the keys could not be had. */
export function refusesToken(failure: unknown): boolean {
	return (
		failure instanceof errors.JOSEError &&
		!(failure instanceof errors.JWKSTimeout) &&
		!(failure instanceof errors.JWKSInvalid) &&
		// Its base class stands for answers that are no key set.
		failure.code !== "ERR_JOSE_GENERIC"
	);
}
