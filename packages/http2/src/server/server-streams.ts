import { HeadDecoder } from "../connection/head-decoder.ts";
import type { Stream } from "../connection/stream.ts";
import { noFields, Streams, type StreamsHost } from "../connection/streams.ts";
import { errorCode } from "../error-code.ts";
import { maxInt31 } from "../frames/frame.ts";
import type { Fields, Http2Connection, RequestHandler, RequestHead } from "../http2.ts";
import { problemOfTrailers } from "../message/fields.ts";
import { parseRequestHead } from "../message/request-head.ts";
import { ServerStream, type ServerStreamHost } from "./server-stream.ts";

/** What the streams of a server need. */
export interface ServerStreamsHost extends StreamsHost {
	readonly connection: Http2Connection;
	readonly onRequest: RequestHandler;
}

/** The requests of a client. */
export class ServerStreams extends Streams<ServerStream> implements ServerStreamHost {
	/** Streams above this identifier are dropped, as announced by a GOAWAY. */
	lastAcceptedId = maxInt31;
	readonly #host: Pick<ServerStreamsHost, "connection" | "onRequest">;
	readonly #heads: HeadDecoder<RequestHead>;

	constructor(host: ServerStreamsHost) {
		super(host);
		this.#host = host;
		const { decoder, limits, counters } = host;
		this.#heads = new HeadDecoder(decoder, limits.maxHeaderListBytes, counters, parseRequestHead);
	}

	// ── What streams call ──

	sendHead(stream: ServerStream, status: number, fields: Fields, endStream: boolean): void {
		this.sendBlock(stream.id, status, fields, endStream);
		if (endStream) {
			stream.isLocalEnded = true;
			this.finishIfEnded(stream);
		}
	}

	sendContinue(stream: ServerStream): void {
		this.sendBlock(stream.id, 100, noFields, false);
	}

	protected override endLocal(stream: Stream): void {
		super.endLocal(stream);
		// With the request, the stream ends as well, and gets that notice instead.
		stream.needsDrain ||= !stream.isClosed;
		this.noteDrained(stream);
	}

	// ── Frames ──

	protected override onBlock(
		id: number,
		endStream: boolean,
		bytes: Buffer,
		start: number,
		end: number,
	): void {
		const stream = this.open.get(id);
		if (stream !== undefined) {
			this.#onTrailers(stream, endStream, bytes, start, end);
		} else if (id <= this.highestId) {
			this.#heads.decode(bytes, start, end);
			this.onClosedStream(id);
		} else {
			this.highestId = id;
			this.#onHead(id, endStream, bytes, start, end);
		}
	}

	protected override onClosedStream(id: number): void {
		if (id <= this.lastAcceptedId) {
			super.onClosedStream(id);
		}
	}

	#onHead(id: number, endStream: boolean, bytes: Buffer, start: number, end: number): void {
		const head = this.#heads.head(bytes, start, end);
		if (id > this.lastAcceptedId) {
			return;
		}
		if ("listBytes" in head) {
			this.sendBlock(id, 431, noFields, true);
			if (endStream) {
				this.takeStreamError();
				this.closed.addFinished(id);
			} else {
				this.#refuse(id, errorCode.noError);
			}
		} else if ("problem" in head || (endStream && head.contentLength > 0)) {
			this.#refuse(id, errorCode.protocolError);
		} else if (this.open.size >= this.limits.maxConcurrentStreams) {
			this.#refuse(id, errorCode.refusedStream);
		} else {
			this.#openStream(id, head, endStream);
		}
	}

	#openStream(id: number, head: RequestHead, endStream: boolean): void {
		const { counters, peer } = this.host;
		const { connection, onRequest } = this.#host;
		const stream = new ServerStream(this, id, head, this.streamWindowBytes, peer.initialWindowSize);
		stream.isRemoteEnded = endStream;
		this.open.add(stream);
		counters.streamsOpened++;
		try {
			stream.attach(onRequest(stream, head, connection));
		} catch (error) {
			this.handlerFailed(stream, error);
			return;
		}
		if (endStream && !stream.hasEnded) {
			stream.deliverEnd(noFields);
		}
	}

	#onTrailers(
		stream: ServerStream,
		endStream: boolean,
		bytes: Buffer,
		start: number,
		end: number,
	): void {
		const { fields, listBytes } = this.#heads.decode(bytes, start, end);
		if (stream.isRemoteEnded) {
			this.failStream(stream, errorCode.streamClosed);
		} else if (listBytes > this.limits.maxHeaderListBytes) {
			this.failStream(stream, errorCode.enhanceYourCalm);
		} else if (
			!endStream ||
			problemOfTrailers(fields) !== undefined ||
			(stream.contentLength >= 0 && stream.contentLength !== stream.receivedBytes)
		) {
			this.failStream(stream, errorCode.protocolError);
		} else {
			this.endRemote(stream, fields);
		}
	}

	/** Resets a stream that no handler knows. */
	#refuse(id: number, code: number): void {
		this.takeStreamError();
		this.host.counters.streamsRefused++;
		this.sendReset(id, code);
	}
}
