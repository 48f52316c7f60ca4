import { Code, ConnectError } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";
import type { CallMethod, RetryReason } from "../call/call-environment.ts";
import { outcomeUnknown } from "../errors/outcome-unknown.ts";
import type { ResponseHead } from "../headers/response-headers.ts";
import type { Fields, InboundCall } from "../inbound-call.ts";
import { HeldResponse } from "./held-response.ts";
import { isConditional } from "./write-condition.ts";

/**
 * What is known about the execution of a call: whether a server may have executed it, and whether it may be executed again.
 *
 * Invariants:
 *
 * - Once a call that may change something may have been executed, each error about it says so.
 * - The response to such a call is held until all of it has come, so that an error can take its place if the server is lost
 *   before. If the call was sent again, it is not passed on if it is an error about a conflict with the first execution.
 */
export class CallExecution {
	readonly #call: InboundCall;
	readonly #method: CallMethod;
	readonly #wholeBody: () => Uint8Array | undefined;
	readonly #logger: Logger;
	#mayHaveBegun = false;
	#held: HeldResponse | undefined;

	/** @param wholeBody - the body of the request, if all of it is known. */
	constructor(
		call: InboundCall,
		method: CallMethod,
		wholeBody: () => Uint8Array | undefined,
		logger: Logger,
	) {
		this.#call = call;
		this.#method = method;
		this.#wholeBody = wholeBody;
		this.#logger = logger;
	}

	/** A server may have executed the call. */
	begun(): void {
		this.#mayHaveBegun = true;
	}

	/** Whether a server may have executed the call. */
	get mayHaveBegun(): boolean {
		return this.#mayHaveBegun;
	}

	/** Whether the call may have changed something. */
	get isUncertain(): boolean {
		return this.#mayHaveBegun && !this.#method.isRepeatable;
	}

	/** Why the call may be executed again after a server may have executed it; `undefined` if it must not be. */
	get repetition(): RetryReason | undefined {
		if (this.#method.isRepeatable) {
			return "read";
		}
		const { write } = this.#method;
		const body = write && this.#wholeBody();
		return write !== undefined && body !== undefined && isConditional(write, this.#call, body)
			? "conditional_write"
			: undefined;
	}

	/** The error of a call that no server is executing any more. */
	unavailable(message: string): ConnectError {
		return this.isUncertain
			? outcomeUnknown(`the call may have been executed: read what it changes. ${message}`)
			: new ConnectError(message, Code.Unavailable);
	}

	/** The error of a call whose server was lost, and which is not sent again. */
	lost(address: string, reason: string): ConnectError {
		if (this.#method.isRepeatable) {
			return new ConnectError(`no server has responded: ${reason}`, Code.Unavailable);
		}
		this.#logger.warn(
			{ server: address, path: this.#call.target, reason },
			"a server was lost while it handled a call that may change something",
		);
		return outcomeUnknown(
			`the server was lost while it handled the call, which may have been executed: read what it changes before you repeat it. ${reason}`,
		);
	}

	/** The response that is held. */
	get held(): HeldResponse | undefined {
		return this.#held;
	}

	/** Begins to hold a response, unless the call changes nothing, or may have a stream of responses. */
	hold(head: ResponseHead): boolean {
		const { isRepeatable, isUnary } = this.#method;
		const isHeld = this.isUncertain || (isUnary && !isRepeatable);
		if (isHeld) {
			this.#held = new HeldResponse(head);
		}
		return isHeld;
	}

	/** The response is held no longer: it is passed on, or its server was lost. */
	release(): void {
		this.#held = undefined;
	}

	/** The held response has ended: the error for the client, or `undefined` if the response can be passed on. */
	conflict(trailers: Fields): ConnectError | undefined {
		const error = this.isUncertain ? this.#held?.repetition(trailers) : undefined;
		return (
			error &&
			outcomeUnknown(
				`a server was lost while it handled the call, which may have been executed: read what it changes. The call was repeated, and failed with ${Code[error.code]}: ${error.rawMessage}`,
			)
		);
	}
}
