import type { ConnectError } from "@connectrpc/connect";
import { errorCode } from "@plinth/http2";
import { endWithError, respondWithError } from "../errors/error-response.ts";
import type { ResponseHead } from "../headers/response-headers.ts";
import type { Fields, InboundCall } from "../inbound-call.ts";
import { Envelopes, isEnveloped } from "./envelopes.ts";
import { OrderedWrites } from "./ordered-writes.ts";

/**
 * The response as the client receives it: one head, chunks, and one end.
 *
 * Invariant: an error is put where the protocol has a place for it, and only at the end of a message; otherwise the call is
 * reset, so that no client takes what was cut off for complete.
 */
export class ClientResponse {
	readonly #call: InboundCall;
	readonly #writes: OrderedWrites;
	/** The content type of the head that was passed on. */
	#type: string | undefined;
	#envelopes: Envelopes | undefined;
	/** Bytes that its length promises and that have not arrived. */
	#missingBytes = 0;

	constructor(call: InboundCall) {
		this.#call = call;
		this.#writes = new OrderedWrites(call);
	}

	/** Whether a head was passed on. */
	get hasBegun(): boolean {
		return this.#type !== undefined;
	}

	/** Whether its length promises more than has arrived. */
	get isMissingBytes(): boolean {
		return this.#missingBytes > 0;
	}

	/** Passes on a head, with these fields. @throws Error if a field is not valid; then nothing was sent. */
	begin(head: ResponseHead, fields: Fields): void {
		const contentType = head["content-type"] ?? "";
		this.#type = contentType;
		this.#envelopes = isEnveloped(contentType) ? new Envelopes() : undefined;
		const length = this.#call.method === "HEAD" ? "" : (head["content-length"] ?? "");
		this.#missingBytes = /^\d+$/.test(length) ? Number(length) : 0;
		this.#call.respond(Number(head[":status"]), fields, true);
	}

	/** Passes on a chunk. Returns a promise if the next one must wait. */
	pass(chunk: Uint8Array): Promise<void> | undefined {
		this.#count(chunk);
		try {
			return this.#call.write(chunk);
		} catch {
			// The listener has ended the call, and says so.
			return undefined;
		}
	}

	/** Passes on what was held of the body, before the rest or the end. */
	passHeld(bytes: Uint8Array): Promise<void> | undefined {
		this.#count(bytes);
		return bytes.length > 0 ? this.#writes.write(bytes) : undefined;
	}

	/** Passes on a part of a watch, after all that was passed on before: streams may follow each other quickly. */
	passOfWatch(bytes: Uint8Array): Promise<void> | undefined {
		return this.#writes.write(bytes);
	}

	/** Completes the response, after what is being written. */
	complete(last: Uint8Array | undefined, trailers: Fields | undefined): void {
		this.#writes.complete(last, trailers);
	}

	/** Whether what was passed on ends at the end of a message. That of a watch is not followed here. */
	get isAtBoundary(): boolean {
		return this.#envelopes?.isAtBoundary ?? false;
	}

	/** Ends the response with an error, or by a reset. @param isAtBoundary - whether an error can follow. */
	fail(error: ConnectError, isAtBoundary: boolean): void {
		this.#writes.stop();
		try {
			if (this.#type === undefined) {
				respondWithError(this.#call, error);
			} else if (
				this.#writes.isWithinWrite ||
				!endWithError(this.#call, error, this.#type, isAtBoundary)
			) {
				this.reset(errorCode.internalError);
			}
		} catch {
			// The client went away in the meantime.
			this.reset(errorCode.internalError);
		}
	}

	/** Ends the call with an error code of HTTP/2. */
	reset(code: number): void {
		this.#call.reset(code);
	}

	#count(chunk: Uint8Array): void {
		this.#envelopes?.add(chunk);
		this.#missingBytes -= chunk.length;
	}
}
