import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

/**
 * A request gate for Connect routers: makes the caller, and not the server, answerable for bytes
 * that are no message. Connect answers Internal to a binary message that it can't parse, before any
 * interceptor or method runs; it aborts the call with the error before it sends it, which is where
 * the code is put right.
 */
export function refuseMalformedMessages({ signal }: Pick<HandlerContext, "signal">): void {
	signal.addEventListener(
		"abort",
		() => {
			const error: unknown = signal.reason;
			if (
				error instanceof ConnectError &&
				error.code === Code.Internal &&
				error.rawMessage.startsWith("parse binary: ")
			) {
				Object.assign(error, { code: Code.InvalidArgument });
			}
		},
		{ once: true },
	);
}
