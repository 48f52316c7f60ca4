import { ConnectionError, errorCode } from "../error-code.ts";
import type { Http2Limits } from "../http2.ts";

/** A header block whose last frame has not arrived. While there is one, the peer may send nothing else. */
export interface OpenBlock {
	readonly streamId: number;
	readonly endStream: boolean;
}

/**
 * Assembles header blocks that are spread over HEADERS and CONTINUATION frames. Both the frames and their bytes
 * are limited: a block could otherwise go on forever.
 */
export class HeaderBlockAssembly {
	readonly #limits: Http2Limits;
	#open: OpenBlock | undefined;
	#parts: Buffer[] = [];
	#bytes = 0;

	constructor(limits: Http2Limits) {
		this.#limits = limits;
	}

	get open(): OpenBlock | undefined {
		return this.#open;
	}

	begin(block: OpenBlock, part: Buffer): void {
		this.#open = block;
		this.#add(part);
	}

	/** Takes a CONTINUATION frame. Returns the block once it is complete. */
	continue(part: Buffer, isLast: boolean): Buffer | undefined {
		this.#add(part);
		if (!isLast) {
			return undefined;
		}
		const block = Buffer.concat(this.#parts);
		this.#open = undefined;
		this.#parts = [];
		this.#bytes = 0;
		return block;
	}

	#add(part: Buffer): void {
		this.#parts.push(part);
		this.#bytes += part.length;
		const { maxContinuations, maxHeaderListBytes } = this.#limits;
		// Twice as much as is allowed: up to this size, the client gets a response instead of a broken connection.
		if (this.#parts.length > maxContinuations + 1 || this.#bytes > maxHeaderListBytes * 2) {
			throw new ConnectionError(errorCode.enhanceYourCalm, "a header block is too long");
		}
	}
}
