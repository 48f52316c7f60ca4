import type { Message } from "@bufbuild/protobuf";

/** Identifies an encoding: a message has the same bytes for all calls with the same key. */
export type EncodingKey = object;

/** The envelopes of shared messages, by encoding. */
const envelopes = new WeakMap<object, Map<EncodingKey, Uint8Array>>();

/**
 * Declares that a message is sent to many calls, so that it is encoded once for all of them. The message must not be
 * changed from now on. Its bytes are kept as long as the object; copies of it are not shared.
 *
 * ```ts
 * const event = shareEncodings(eventOf(change));
 * for (const stream of streams) {
 *   stream.send(event);
 * }
 * ```
 *
 * @returns the message itself.
 */
export function shareEncodings<T extends Message>(message: T): T {
	if (!envelopes.has(message)) {
		envelopes.set(message, new Map());
	}
	return message;
}

/**
 * The envelope of a message that is shared, encoded on the first call for a key; `undefined` if it is not shared.
 *
 * @param encode - returns the envelope: the flags, the length and the bytes of the message.
 */
export function sharedEnvelope<T extends Message>(
	message: T,
	key: EncodingKey,
	encode: (message: T) => Uint8Array,
): Uint8Array | undefined {
	const shared = envelopes.get(message);
	if (shared === undefined) {
		return undefined;
	}
	let envelope = shared.get(key);
	if (envelope === undefined) {
		envelope = encode(message);
		shared.set(key, envelope);
	}
	return envelope;
}
