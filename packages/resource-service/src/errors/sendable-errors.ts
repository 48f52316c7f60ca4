import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { sendableMessage } from "../requests/limits.ts";

/**
 * A request gate for Connect routers that puts errors right which Connect makes itself, before any
 * interceptor or method runs:
 *
 * - To bytes that are no message it answers Internal; that is InvalidArgument, the caller's doing.
 * - It repeats what it can't parse, and what is malformed or too long can't be sent with gRPC, as a
 *   header: the call would never be answered.
 *
 * Connect ends a call by way of its context, in all protocols, and sends the error only then. Calls that end
 * well get one reason for all: each of its own would cost a stack trace.
 */
export function correctConnectErrors(call: HandlerContext): void {
	if (isEndable(call)) {
		const { abort } = call;
		call.abort = (reason) => {
			putRight(reason);
			abort(reason ?? ended);
		};
	}
}

const ended = new DOMException("the call has ended", "AbortError");

/** What Connect's own contexts can do besides. */
interface Endable {
	abort: (reason?: unknown) => void;
}

function isEndable(call: object): call is Endable {
	return "abort" in call && typeof call.abort === "function";
}

const malformed = /^(parse binary: |received compressed envelope)/;

function putRight(error: unknown): void {
	if (error instanceof ConnectError) {
		const isCallersFault = error.code === Code.Internal && malformed.test(error.rawMessage);
		Object.assign(error, {
			rawMessage: sendableMessage(error.rawMessage),
			code: isCallersFault ? Code.InvalidArgument : error.code,
		});
	}
}
