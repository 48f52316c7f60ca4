import { Code, ConnectError } from "@connectrpc/connect";
import type { BodyListener, HttpRequest } from "./request-handler.ts";

/** A chunk is copied if the memory that it would keep is more than this many times larger. */
const sparse = 4;

/**
 * The body of a request, read on demand. A chunk may be a small part of what was read from the socket, and keeps all of
 * it. Otherwise clients could make the server keep many times the bytes that its limits count, by sending other frames
 * between the parts of a body. The first chunk, which mostly is the only one, is not copied. The request stays open when the iteration ends, because its response follows
 * and, over HTTP/1.1, further calls on the same connection.
 */
export class RequestBody implements AsyncIterableIterator<Uint8Array>, BodyListener {
	readonly #request: HttpRequest;
	readonly #onChunk: () => void;
	#hasBegun = false;
	#isListening = false;
	#isPaused = false;
	#failure: ConnectError | undefined;
	#failed: AbortController | undefined;
	/** What was put back. */
	#returned: Uint8Array | undefined;
	/** The reader that waits for the next chunk. */
	#wake: (() => void) | undefined;

	/** @param onChunk - called for each chunk that was received. */
	constructor(request: HttpRequest, onChunk: () => void) {
		this.#request = request;
		this.#onChunk = onChunk;
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	async next(): Promise<IteratorResult<Uint8Array, undefined>> {
		for (;;) {
			const chunk = this.take();
			if (chunk === "end") {
				return { done: true, value: undefined };
			}
			if (chunk !== undefined) {
				return { done: false, value: chunk };
			}
			await new Promise<void>((resolve) => this.wait(resolve));
		}
	}

	/**
	 * The next chunk if it has arrived; `undefined` if not.
	 *
	 * @throws ConnectError if the body can't be read.
	 */
	take(): Uint8Array | "end" | undefined {
		this.#listen();
		if (this.#failure !== undefined) {
			throw this.#failure;
		}
		if (this.#isPaused) {
			return undefined;
		}
		const returned = this.#returned;
		if (returned !== undefined) {
			this.#returned = undefined;
			return returned;
		}
		const chunk = this.#request.read();
		if (chunk !== undefined) {
			this.#onChunk();
			const isSparse = this.#hasBegun && chunk.byteLength * sparse < chunk.buffer.byteLength;
			this.#hasBegun = true;
			return isSparse ? new Uint8Array(chunk) : chunk;
		}
		return this.#request.isRead ? "end" : undefined;
	}

	/** Puts back all that was taken, as one chunk, so that another reader takes it again. */
	putBack(taken: Uint8Array): void {
		this.#returned = taken;
	}

	/** Calls `wake` once, when `take` may have a result. Only one reader may wait. */
	wait(wake: () => void): void {
		this.#wake = wake;
	}

	async return(): Promise<IteratorResult<Uint8Array, undefined>> {
		this.stop();
		return { done: true, value: undefined };
	}

	/** Stops reading, so that the rest of the request can be discarded. */
	stop(): void {
		this.#request.listenToBody(undefined);
	}

	/** Leaves further bytes on the socket: reads wait until the body is resumed or fails. */
	pause(): void {
		this.#isPaused = true;
	}

	/** Continues to read after a pause. */
	resume(): void {
		this.#isPaused = false;
		this.#notify();
	}

	get isPaused(): boolean {
		return this.#isPaused;
	}

	/** Aborts when reads fail, with the error as its reason. */
	get failed(): AbortSignal {
		this.#failed ??= new AbortController();
		if (this.#failure !== undefined) {
			this.#failed.abort(this.#failure);
		}
		return this.#failed.signal;
	}

	/** Makes the pending read and all further ones fail. */
	fail(failure: ConnectError): void {
		this.#failure ??= failure;
		this.#failed?.abort(this.#failure);
		this.#notify();
	}

	#listen(): void {
		if (this.#isListening) {
			return;
		}
		this.#isListening = true;
		this.#request.listenToBody(this);
		if (this.#request.isLost) {
			this.bodyChanged();
		}
	}

	bodyChanged(): void {
		if (this.#request.isLost) {
			this.fail(new ConnectError("the request ended before its body was complete", Code.Canceled));
		} else {
			this.#notify();
		}
	}

	#notify(): void {
		const wake = this.#wake;
		this.#wake = undefined;
		wake?.();
	}
}
