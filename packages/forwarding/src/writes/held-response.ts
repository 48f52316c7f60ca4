import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ByteQueue } from "@plinth/runtime";
import { type ResponseHead, responseFields } from "../headers/response-headers.ts";
import type { Fields } from "../inbound-call.ts";
import { MessageBuffer, messageOf } from "../watches/message-buffer.ts";
import { streamProtocol } from "../watches/stream-protocol.ts";

/** So much of a response is held, in bytes. An error is smaller. */
const limit = 64 * 1024;

/** The response of a write, until all of it has come and it is known whether it may be passed on. */
export class HeldResponse {
	readonly head: ResponseHead;
	readonly #bytes = new ByteQueue();

	constructor(head: ResponseHead) {
		this.head = head;
	}

	/** Adds a chunk. Returns false if it is too much for an error, so that all of it can be passed on. */
	add(chunk: Uint8Array): boolean {
		this.#bytes.push(chunk);
		return this.#bytes.length <= limit;
	}

	get body(): Uint8Array {
		return this.#bytes.join();
	}

	/**
	 * The error of the response, unless it says that the write can't have been executed before either: whatever else the second
	 * server has refused it for, the first one may have accepted it.
	 */
	repetition(trailers: Fields): ConnectError | undefined {
		const error = this.#error(trailers);
		return error?.code === Code.InvalidArgument ? undefined : error;
	}

	#error(trailers: Fields): ConnectError | undefined {
		const protocol = streamProtocol(this.head["content-type"]);
		if (protocol === undefined) {
			const unknown = new ConnectError("", Code.Unknown);
			return this.head[":status"] === "200"
				? undefined
				: errorOf(() => errorFromJsonBytes(this.body, undefined, unknown));
		}
		const { endFlag, endOf } = protocol;
		const ends = new MessageBuffer(0, { take: () => false, give: () => {} })
			.add(this.body)
			.filter((piece) => piece.kind === "message" && (piece.flags & (endFlag ?? 0)) !== 0);
		const [end] = ends;
		const fields = { ...responseFields(this.head), ...responseFields(trailers) };
		const found = endOf(end && messageOf(end), fields);
		return found.kind === "status" ? found.error : undefined;
	}
}

function errorOf(parse: () => ConnectError): ConnectError {
	try {
		return parse();
	} catch (failure) {
		return ConnectError.from(failure);
	}
}
