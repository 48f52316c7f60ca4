import type { HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";

/** Logs failures of handlers that only a bug explains. */
export function logFaults(
	logger: Logger,
): (call: Pick<HandlerContext, "method">, failure: unknown) => void {
	return ({ method }, failure) =>
		logger.error({ method: method.name, err: failure }, "a handler failed");
}
