import { LinkedList } from "@plinth/runtime";
import { HeadDecoder } from "../connection/head-decoder.ts";
import { noFields, Streams, type StreamsHost } from "../connection/streams.ts";
import { errorCode } from "../error-code.ts";
import { maxInt31 } from "../frames/frame.ts";
import type { Fields, ResetOrigin, ResponseHandler } from "../http2.ts";
import { checkLatin1 } from "../message/fields.ts";
import { parseRequestHead } from "../message/request-head.ts";
import { parseResponseBlock, type ResponseBlock } from "../message/response-block.ts";
import { ClientStream } from "./client-stream.ts";

/**
 * The requests of this side.
 *
 * Invariants: a request waits only while the server has as many streams open as it accepts, and requests are sent in the
 * order in which they were made. Those that wait have no identifier, are in no table, and send nothing.
 */
export class ClientStreams extends Streams<ClientStream> {
	readonly #heads: HeadDecoder<ResponseBlock>;
	readonly #waiting = new LinkedList<ClientStream>();
	#nextId = 1;

	constructor(host: StreamsHost) {
		super(host);
		const { decoder, limits, counters } = host;
		this.#heads = new HeadDecoder(decoder, limits.maxHeaderListBytes, counters, parseResponseBlock);
	}

	override get count(): number {
		return super.count + this.#waiting.size;
	}

	override get isIdle(): boolean {
		return super.isIdle && this.#waiting.size === 0;
	}

	/** Whether there are identifiers for further requests. */
	get hasIdentifiers(): boolean {
		return this.#nextId + 2 * this.#waiting.size <= maxInt31;
	}

	/** @throws Error if the request would be malformed. */
	request(fields: Fields, handler: ResponseHandler): ClientStream {
		if (!this.encoder.isCached(0, fields)) {
			checkRequest(fields);
		}
		const stream = new ClientStream(this, fields, handler, this.streamWindowBytes);
		if (this.#waiting.size === 0 && this.#hasRoom) {
			this.#open(stream);
		} else {
			stream.place = this.#waiting.append(stream);
		}
		return stream;
	}

	/** Sends the requests that wait, as far as the server accepts them. */
	openWaiting(): void {
		while (this.#hasRoom) {
			const stream = this.#waiting.shift();
			if (stream === undefined) {
				return;
			}
			this.#open(stream);
		}
	}

	/** Whether the server accepts another stream. */
	get #hasRoom(): boolean {
		return this.open.size < this.host.peer.maxConcurrentStreams;
	}

	#open(stream: ClientStream): void {
		const { counters, peer } = this.host;
		const id = this.#nextId;
		this.#nextId += 2;
		this.highestId = id;
		stream.opened(id, peer.initialWindowSize, this.streamWindowBytes);
		this.open.add(stream);
		counters.streamsOpened++;
		this.sendBlock(id, 0, stream.fields, false);
		this.wake(stream);
	}

	/** Takes all requests that wait. */
	#takeWaiting(): readonly ClientStream[] {
		const waiting = [...this.#waiting];
		for (const stream of waiting) {
			stream.place?.remove();
		}
		return waiting;
	}

	/**
	 * Closes the streams that the server does not process: those above this identifier, and all that wait. They are returned,
	 * and their handlers have not been notified.
	 */
	closeAbove(lastStreamId: number): readonly ClientStream[] {
		// Those that wait must not take the places of the others.
		const waiting = this.#takeWaiting();
		const refused = [...this.open].filter(({ id }) => id > lastStreamId);
		for (const stream of refused) {
			this.closed.addReset(stream.id);
			this.remove(stream);
		}
		for (const stream of waiting) {
			this.#removeWaiting(stream);
		}
		return [...refused, ...waiting];
	}

	override resetStream(stream: ClientStream, code: number): void {
		if (stream.place?.remove() === true) {
			this.#dropWaiting(stream, code, "local");
		} else {
			super.resetStream(stream, code);
		}
	}

	override resetAll(code: number): void {
		const waiting = this.#takeWaiting();
		super.resetAll(code);
		for (const stream of waiting) {
			this.#dropWaiting(stream, code, "connection");
		}
	}

	protected override streamClosed(): void {
		this.openWaiting();
	}

	protected override onBlock(
		id: number,
		endStream: boolean,
		bytes: Buffer,
		start: number,
		end: number,
	): void {
		const block = this.#heads.head(bytes, start, end);
		const stream = this.open.get(id);
		if (stream === undefined) {
			this.checkNotIdle(id);
			this.onClosedStream(id);
		} else if (stream.isRemoteEnded) {
			this.failStream(stream, errorCode.streamClosed);
		} else if ("listBytes" in block) {
			this.failStream(stream, errorCode.enhanceYourCalm);
		} else if ("problem" in block || (block.status === 0) !== stream.acceptsData) {
			this.failStream(stream, errorCode.protocolError);
		} else if (block.status === 0) {
			this.#onTrailers(stream, endStream, block.fields);
		} else {
			this.#onHead(stream, endStream, block);
		}
	}

	#onHead(stream: ClientStream, endStream: boolean, block: ResponseBlock): void {
		const { status, fields } = block;
		if (status < 200) {
			this.takeControlFrame();
			if (endStream || status === 101) {
				this.failStream(stream, errorCode.protocolError);
			}
			return;
		}
		const hasBody = status !== 204 && status !== 304 && stream.fields[1] !== "HEAD";
		stream.contentLength = hasBody ? block.contentLength : -1;
		if (endStream && stream.contentLength > 0) {
			this.failStream(stream, errorCode.protocolError);
			return;
		}
		stream.deliverHead(status, fields);
		if (endStream && !stream.isClosed) {
			this.endRemote(stream, noFields);
		}
	}

	#onTrailers(stream: ClientStream, endStream: boolean, fields: Fields): void {
		const isShort = stream.contentLength >= 0 && stream.contentLength !== stream.receivedBytes;
		if (!endStream || isShort) {
			this.failStream(stream, errorCode.protocolError);
		} else {
			this.endRemote(stream, fields);
		}
	}

	#dropWaiting(stream: ClientStream, code: number, origin: ResetOrigin): void {
		this.#removeWaiting(stream);
		stream.deliverReset(code, origin);
	}

	#removeWaiting(stream: ClientStream): void {
		stream.isClosed = true;
		this.sender.drop(stream);
		// The connection may be waiting for it before it ends.
		this.host.scheduleFlush();
	}
}

function checkRequest(fields: Fields): void {
	if (fields.length % 2 !== 0) {
		throw new Error("fields must be pairs of a name and a value");
	}
	if (fields[0] !== ":method") {
		throw new Error("the first field of a request must be :method");
	}
	const head = parseRequestHead(fields);
	if ("problem" in head) {
		throw new Error(head.problem);
	}
	checkLatin1(fields);
}
