import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { sendableMessage } from "../requests/limits.ts";

/**
 * A request gate for Connect routers that corrects errors which Connect itself creates, before any interceptor
 * or method runs:
 *
 * - Connect responds with Internal to bytes that are not a message. It should be InvalidArgument, because the
 *   caller is at fault.
 * - Connect quotes input that it can't parse. gRPC sends the message as a header, and can't send one that is
 *   malformed or too long: the call would never receive a response.
 * - Connect refuses a compressed request with a list of the supported encodings. On a server that supports none,
 *   that list is empty, and the sentence has no end.
 *
 * In all protocols, Connect aborts the context of a call before it sends the error. Calls that succeed share one
 * abort reason, because creating one per call would cost a stack trace.
 */
export function correctConnectErrors(call: HandlerContext): void {
	if (isEndable(call)) {
		const { abort } = call;
		call.abort = (reason) => {
			if (reason instanceof ConnectError) {
				correctConnectError(reason);
			}
			abort(reason ?? ended);
		};
	}
}

const ended = new DOMException("the call has ended", "AbortError");

/** The method of Connect's contexts that is not part of their public type. */
interface Endable {
	abort: (reason?: unknown) => void;
}

function isEndable(call: object): call is Endable {
	return "abort" in call && typeof call.abort === "function";
}

/** How Connect's refusal of a compressed request ends if the server supports no encoding. */
const emptyList = ": supported encodings are ";

function completeMessage({ code, rawMessage }: ConnectError): string {
	const lacksEncodings =
		code === Code.Unimplemented &&
		rawMessage.startsWith("unknown compression ") &&
		rawMessage.endsWith(emptyList);
	return lacksEncodings
		? `${rawMessage.slice(0, -emptyList.length)}: the server accepts only uncompressed messages`
		: rawMessage;
}

const malformed = /^(parse binary: |received compressed envelope)/;

/** Corrects one error, as `correctConnectErrors` does. */
export function correctConnectError(error: ConnectError): void {
	const isCallersFault = error.code === Code.Internal && malformed.test(error.rawMessage);
	Object.assign(error, {
		rawMessage: sendableMessage(completeMessage(error)),
		code: isCallersFault ? Code.InvalidArgument : error.code,
	});
}
