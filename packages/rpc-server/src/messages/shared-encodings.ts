import type { Message } from "@bufbuild/protobuf";
import { attachment } from "@plinth/runtime";

/** Identifies an encoding: a message has the same bytes for all calls with the same key. */
export type EncodingKey = object;

/** The envelopes of one message. They are in a list, because few encodings are in use. */
interface Shared {
	readonly envelopes: { readonly key: EncodingKey; readonly bytes: Uint8Array }[];
	readonly encoded: ((bytes: number) => void) | undefined;
}

const sharedMessages = attachment<object, Shared>();

/**
 * Declares that a message is sent to many calls, so that it is encoded once for all of them. The message must not
 * change from now on. Its bytes are kept for as long as the object lives; copies of the object do not share them.
 *
 * ```ts
 * const event = shareEncodings(eventOf(change));
 * for (const stream of streams) {
 *   stream.send(event);
 * }
 * ```
 *
 * @param encoded - called with the size of each new encoding in bytes, which is kept from then on.
 * @returns the message itself.
 */
export function shareEncodings<T extends Message>(
	message: T,
	encoded?: (bytes: number) => void,
): T {
	if (sharedMessages.get(message) === undefined) {
		sharedMessages.set(message, { envelopes: [], encoded });
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
	const shared = sharedMessages.get(message);
	if (shared === undefined) {
		return undefined;
	}
	for (const envelope of shared.envelopes) {
		if (envelope.key === key) {
			return envelope.bytes;
		}
	}
	const bytes = encode(message);
	shared.envelopes.push({ key, bytes });
	shared.encoded?.(bytes.byteLength);
	return bytes;
}
