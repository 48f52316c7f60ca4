import { ConnectError, type HandlerContext } from "@connectrpc/connect";

type RequestGate = (call: HandlerContext) => void | Promise<void>;

/**
 * A request gate for Connect's handlers that also corrects errors. In all protocols, Connect aborts the context of a
 * call before it sends the error. Calls that succeed share one abort reason, because creating one per call would cost a
 * stack trace.
 */
export function correctingGate(
	correct: (error: ConnectError) => void,
	gate: RequestGate | undefined,
): RequestGate {
	return (call) => {
		if (isEndable(call)) {
			const { abort } = call;
			call.abort = (reason) => {
				if (reason instanceof ConnectError) {
					correct(reason);
				}
				abort(reason ?? ended);
			};
		}
		return gate?.(call);
	};
}

const ended = new DOMException("the call has ended", "AbortError");

/** The method of Connect's contexts that is not part of their public type. */
interface Endable {
	abort: (reason?: unknown) => void;
}

function isEndable(call: object): call is Endable {
	return "abort" in call && typeof call.abort === "function";
}
