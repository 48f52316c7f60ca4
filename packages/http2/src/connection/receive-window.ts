/**
 * The credit that this side has given to the peer, for a stream or for the connection, RFC 9113, section 6.9.
 *
 *     size = credit + unconsumed + consumed
 *
 *     credit        what the peer may still send; negative after the size was lowered
 *     unconsumed    what it has sent, and the handler has not processed
 *     consumed      what was processed, but not yet returned to the peer
 *
 * Credit is returned once it is at least as much as the peer has left: in halves of the window if the handler
 * consumes everything, and at once if the peer has none left.
 */
export class ReceiveWindow {
	#credit: number;
	#unconsumed = 0;
	#consumed = 0;

	constructor(size: number) {
		this.#credit = size;
	}

	get size(): number {
		return this.#credit + this.#unconsumed + this.#consumed;
	}

	get unconsumed(): number {
		return this.#unconsumed;
	}

	/** Takes bytes from the peer. Returns whether it had credit for them; if not, nothing changes. */
	receive(byteCount: number): boolean {
		if (byteCount > this.#credit) {
			return false;
		}
		this.#credit -= byteCount;
		this.#unconsumed += byteCount;
		return true;
	}

	/**
	 * The handler has processed bytes, at most those that are unconsumed. Returns the credit to return to the peer now,
	 * or 0.
	 */
	consume(byteCount: number): number {
		this.#unconsumed -= byteCount;
		this.#consumed += byteCount;
		if (this.#consumed === 0 || this.#consumed < this.#credit) {
			return 0;
		}
		const increment = this.#consumed;
		this.#credit += increment;
		this.#consumed = 0;
		return increment;
	}

	/** The peer has been told of a different size. */
	resize(bySize: number): void {
		this.#credit += bySize;
	}
}
