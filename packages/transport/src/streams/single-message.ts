import { Code, ConnectError } from "@connectrpc/connect";

/** A stream of one message: in the library's types, requests are streams even for methods that take one message. */
export async function* streamOfOne<T>(message: T): AsyncGenerator<T, undefined> {
	yield message;
}

/**
 * Reads the one message of a stream.
 *
 * @throws ConnectError Unimplemented if the stream has no message or more than one.
 */
export async function onlyMessage<T>(messages: AsyncIterable<T>): Promise<T> {
	const iterator = messages[Symbol.asyncIterator]();
	const first = await iterator.next();
	if (first.done === true) {
		throw new ConnectError("the request has no message", Code.Unimplemented);
	}
	const second = await iterator.next();
	if (second.done !== true) {
		await iterator.return?.();
		throw new ConnectError("the request has more than one message", Code.Unimplemented);
	}
	return first.value;
}
