import type { Fields, InboundCall } from "../inbound-call.ts";

/** A larger write may be sent in parts, between which the client reads. In bytes. */
const partBytes = 64 * 1024;

/**
 * The writes of a response that comes from several streams: these follow each other more quickly than a client reads.
 *
 * Invariant: no write begins before the one before it is complete.
 */
export class OrderedWrites {
	readonly #call: Pick<InboundCall, "write" | "end">;
	/** The last write, until the client has room for another one. Never rejects. */
	#last: Promise<void> | undefined;
	#isInParts = false;
	#isStopped = false;

	constructor(call: Pick<InboundCall, "write" | "end">) {
		this.#call = call;
	}

	/** Whether a write has begun and is not complete, so that nothing else can be sent. */
	get isWithinWrite(): boolean {
		return this.#isInParts;
	}

	/**
	 * Writes after what is being written. Returns a promise, which never rejects, if the client must read before more is
	 * written: if the call ends first, its listener says so.
	 */
	write(bytes: Uint8Array): Promise<void> | undefined {
		if (this.#last === undefined) {
			const waiting = this.#begin(bytes);
			return waiting && this.#wait(waiting);
		}
		return this.#wait(this.#last.then(() => this.#begin(bytes)));
	}

	/** Begins no further write: the response has ended. */
	stop(): void {
		this.#isStopped = true;
	}

	/** Completes the response after what is being written. The client need not read before the end is sent. */
	complete(last: Uint8Array | undefined, trailers: Fields | undefined): void {
		const complete = () => {
			if (last !== undefined && last.length > 0) {
				this.#begin(last)?.catch(() => {});
			}
			this.#call.end(trailers);
		};
		if (this.#last === undefined) {
			complete();
		} else {
			void this.#last.then(complete);
		}
	}

	#begin(bytes: Uint8Array): Promise<void> | undefined {
		if (this.#isStopped) {
			return undefined;
		}
		try {
			const waiting = this.#call.write(bytes);
			this.#isInParts = waiting !== undefined && bytes.length > partBytes;
			return waiting;
		} catch {
			return undefined;
		}
	}

	#wait(waiting: Promise<void>): Promise<void> {
		const done = () => {
			if (this.#last === last) {
				this.#last = undefined;
				this.#isInParts = false;
			}
		};
		const last: Promise<void> = waiting.then(done, done);
		this.#last = last;
		return last;
	}
}
