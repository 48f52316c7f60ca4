import { Code, ConnectError } from "@connectrpc/connect";
import type { Http2ClientStream } from "@plinth/http2";

/** The call that messages are sent on. */
export interface SendingCall {
	readonly isOpen: boolean;
	fail(error: ConnectError): void;
	/** Resolves when the stream has sent what was written, or has closed. */
	drained(): Promise<void>;
	/** Calls the function when the stream has closed. */
	onStreamClosed(closed: () => void): void;
}

/**
 * Writes messages as fast as the stream takes them, then its end. If the call ends before, the messages are
 * left; if they fail, the call does. Never rejects.
 */
export async function sendMessages<T>(
	stream: Http2ClientStream,
	messages: AsyncIterable<T>,
	encode: (message: T) => Buffer,
	call: SendingCall,
): Promise<void> {
	const iterator = messages[Symbol.asyncIterator]();
	let isAtEnd = false;
	call.onStreamClosed(() => {
		if (!isAtEnd) {
			void leave(iterator);
		}
	});
	const next = async (): Promise<IteratorResult<T>> => {
		try {
			const result = await iterator.next();
			isAtEnd = result.done === true;
			return result;
		} catch (thrown) {
			isAtEnd = true;
			throw thrown;
		}
	};
	try {
		while (call.isOpen) {
			const result = await next();
			if (result.done === true) {
				stream.end();
				return;
			}
			if (call.isOpen && !stream.write(encode(result.value))) {
				await call.drained();
			}
		}
	} catch (thrown) {
		call.fail(ConnectError.from(thrown, Code.Internal));
	}
}

async function leave(iterator: AsyncIterator<unknown>): Promise<void> {
	try {
		await iterator.return?.();
	} catch {
		// The call has ended.
	}
}
