import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";
import { sendableError } from "../requests/limits.ts";
import { toConnectError } from "./storage-failure.ts";

/**
 * Maps the failures of a method to the errors that its caller receives. A failure that only a bug explains is
 * logged once, with its cause; the caller receives Internal without any details.
 */
export class ErrorBoundary {
	readonly #logger: Logger;

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	async run<T>(method: string, call: HandlerContext, respond: () => Promise<T>): Promise<T> {
		try {
			return await respond();
		} catch (failure) {
			throw this.explain(method, call, failure);
		}
	}

	/** The error that the caller receives for a failure. */
	explain(method: string, call: HandlerContext, failure: unknown): ConnectError {
		const known = toConnectError(failure);
		if (known !== undefined) {
			return sendableError(known);
		}
		if (call.signal.aborted) {
			return ConnectError.from(call.signal.reason, Code.Canceled);
		}
		this.#logger.error({ method, err: failure }, "internal error in the resource service");
		return new ConnectError("internal error", Code.Internal);
	}
}
