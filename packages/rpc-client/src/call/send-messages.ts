import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

/** The call that messages are sent on. */
export interface SendingCall {
	readonly isOpen: boolean;
	fail(error: ConnectError): void;
}

/**
 * Writes messages as fast as the stream takes them, then its end. If the call ends before, the messages are
 * left; if they fail, the call does. Never rejects.
 */
export async function sendMessages<T>(
	stream: ClientHttp2Stream,
	messages: AsyncIterable<T>,
	encode: (message: T) => Buffer,
	call: SendingCall,
): Promise<void> {
	const iterator = messages[Symbol.asyncIterator]();
	let isAtEnd = false;
	stream.once("close", () => {
		if (!isAtEnd) {
			void leave(iterator);
		}
	});
	try {
		while (call.isOpen) {
			const result = await iterator.next();
			if (result.done === true) {
				isAtEnd = true;
				stream.end();
				return;
			}
			if (call.isOpen && !stream.write(encode(result.value))) {
				await once(stream, "drain", { signal: closing(stream) });
			}
		}
	} catch (thrown) {
		isAtEnd = true;
		call.fail(ConnectError.from(thrown, Code.Internal));
	}
}

/** Aborts when the stream has closed. */
function closing(stream: ClientHttp2Stream): AbortSignal {
	const controller = new AbortController();
	stream.once("close", () => controller.abort());
	return controller.signal;
}

async function leave(iterator: AsyncIterator<unknown>): Promise<void> {
	try {
		await iterator.return?.();
	} catch {
		// The call has ended.
	}
}
