import type { Clock } from "@plinth/runtime";
import {
	createLocalJWKSet,
	createRemoteJWKSet,
	customFetch,
	errors,
	type FetchImplementation,
	type JSONWebKeySet,
	type JWTVerifyGetKey,
} from "jose";
import { z } from "zod";
import { FileError } from "../configuration/located-yaml.ts";

const keySet = z.object({
	keys: z.array(z.looseObject({ kty: z.string() })).min(1),
});

/**
 * The keys of a JSON Web Key Set.
 *
 * @param file the name of the file, for messages.
 * @throws FileError if the text is not a key set.
 */
export function keysOf(file: string, text: string): JWTVerifyGetKey {
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch (cause) {
		throw new FileError(`${file} is not JSON`, { cause });
	}
	if (!isKeySet(value)) {
		throw new FileError(`${file} is not a JSON Web Key Set: { "keys": [ … ] }`);
	}
	return createLocalJWKSet(value);
}

function isKeySet(value: unknown): value is JSONWebKeySet {
	return keySet.safeParse(value).success;
}

/** The limit on the size of a key set, which usually has a few kilobytes. */
const maxKeySetBytes = 1024 * 1024;

/** The limit on the time to fetch a key set. */
const fetchLimitMs = 5_000;

/** The keys at a URL: fetched on demand, within 5 s and 1 MiB, and cached for ten minutes. */
export function keysAt(url: URL, clock: Clock): JWTVerifyGetKey {
	return createRemoteJWKSet(url, {
		cooldownDuration: 10_000,
		[customFetch]: (address, options) => fetchBounded(address, options, clock),
	});
}

/**
 * @throws Error if the response has more than `maxKeySetBytes`, without reading the rest. TimeoutError if it is not
 * complete in time.
 */
async function fetchBounded(
	url: string,
	options: Parameters<FetchImplementation>[1],
	clock: Clock,
): Promise<Response> {
	const end = new AbortController();
	const timer = clock.setTimer(fetchLimitMs, () => {
		const message = `the key set at ${url} did not arrive within ${fetchLimitMs} ms`;
		end.abort(new DOMException(message, "TimeoutError"));
	});
	try {
		const response = await fetch(url, { ...options, signal: end.signal });
		const { status, body } = response;
		if (body === null) {
			return response;
		}
		const chunks: Uint8Array[] = [];
		let size = 0;
		for await (const chunk of body) {
			size += chunk.byteLength;
			if (size > maxKeySetBytes) {
				throw new Error(`the key set at ${url} has more than ${maxKeySetBytes} bytes`);
			}
			chunks.push(chunk);
		}
		return new Response(Buffer.concat(chunks), { status });
	} finally {
		timer.cancel();
	}
}

/** Whether a failure is about the token, and not about fetching the keys. */
export function refusesToken(failure: unknown): boolean {
	return (
		failure instanceof errors.JOSEError &&
		!(failure instanceof errors.JWKSTimeout) &&
		!(failure instanceof errors.JWKSInvalid) &&
		// The base class is thrown for responses that are not a key set.
		failure.code !== "ERR_JOSE_GENERIC"
	);
}
