import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import type { Fields } from "@plinth/http2";
import { type CallRequest, CallResponse } from "@plinth/transport";
import { decodeMessage, incompleteMessage } from "../framing/decode-message.ts";
import { encodeMessage } from "../framing/encode-message.ts";
import { MessageReader } from "../framing/message-reader.ts";
import type { CallEnvironment } from "./call-environment.ts";
import { type CallReader, WireCall } from "./wire-call.ts";
import { toHeaders } from "./wire-headers.ts";

/** Sends one message and returns the one of the response. */
export function callUnary<I extends DescMessage, O extends DescMessage>(
	environment: CallEnvironment,
	method: DescMethodUnary<I, O>,
	request: CallRequest,
	message: MessageShape<I>,
): Promise<UnaryResponse<I, O>> {
	return new Promise((resolve, reject) => {
		const { writeMaxBytes, binary } = environment.messages;
		const body = encodeMessage(method.input, message, writeMaxBytes, binary);
		const reader = new UnaryReader(environment, method, resolve, reject);
		new WireCall(environment, method, request, reader).start((stream) => {
			stream.end(body);
		});
	});
}

/** Reads a response of one message. */
class UnaryReader<I extends DescMessage, O extends DescMessage> implements CallReader {
	readonly #environment: CallEnvironment;
	readonly #method: DescMethodUnary<I, O>;
	readonly #resolve: (response: UnaryResponse<I, O>) => void;
	readonly #reject: (error: ConnectError) => void;
	readonly #bytes: MessageReader;
	#header: Fields = [];
	#message: Uint8Array | undefined;

	constructor(
		environment: CallEnvironment,
		method: DescMethodUnary<I, O>,
		resolve: (response: UnaryResponse<I, O>) => void,
		reject: (error: ConnectError) => void,
	) {
		this.#environment = environment;
		this.#method = method;
		this.#resolve = resolve;
		this.#reject = reject;
		this.#bytes = new MessageReader(environment.messages.readMaxBytes);
	}

	begun(header: Fields): void {
		this.#header = header;
	}

	received(chunk: Buffer): void {
		if (this.#message === undefined) {
			this.#message = this.#bytes.receive(chunk);
		} else {
			this.#bytes.keep(chunk);
		}
		if (this.#message !== undefined && this.#bytes.hasRest) {
			throw new ConnectError(
				"protocol error: received extra output message for unary method",
				Code.Unimplemented,
			);
		}
	}

	completed(trailer: Fields): void {
		try {
			const message = this.#decode();
			const header = this.#header;
			this.#resolve(
				new CallResponse(
					false as const,
					this.#method,
					message,
					() => toHeaders(header),
					() => toHeaders(trailer),
				),
			);
		} catch (thrown) {
			this.#reject(ConnectError.from(thrown, Code.Internal));
		}
	}

	failed(error: ConnectError): void {
		this.#reject(error);
	}

	#decode(): MessageShape<O> {
		if (this.#message !== undefined) {
			return decodeMessage(this.#method.output, this.#message, this.#environment.messages.binary);
		}
		if (this.#bytes.hasRest) {
			throw incompleteMessage();
		}
		throw new ConnectError(
			"protocol error: missing output message for unary method",
			Code.Unimplemented,
		);
	}
}
