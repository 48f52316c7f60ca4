import type { ListEntry } from "@plinth/runtime";
import { Stream, type StreamHost } from "../connection/stream.ts";
import type { Fields, Http2ClientStream, ResponseHandler } from "../http2.ts";

/** A request that this side has made, and its response. It has no identifier while it waits to be sent. */
export class ClientStream extends Stream implements Http2ClientStream {
	/** The head of the request. */
	readonly fields: Fields;
	/** Its place among the requests that wait, while it is one of them. */
	place: ListEntry<ClientStream> | undefined;
	readonly #handler: ResponseHandler;
	readonly #host: StreamHost;
	#hasHead = false;

	constructor(
		host: StreamHost,
		fields: Fields,
		handler: ResponseHandler,
		receiveWindowBytes: number,
	) {
		super(host, 0, -1, receiveWindowBytes, 0);
		this.#host = host;
		this.fields = fields;
		this.#handler = handler;
		this.attach(handler);
	}

	/** Whether the head of the response has arrived. */
	override get acceptsData(): boolean {
		return this.#hasHead;
	}

	override get usesData(): boolean {
		return true;
	}

	/** The request is sent now, on the stream with this identifier and these windows. */
	opened(id: number, sendWindow: number, receiveWindowBytes: number): void {
		this.id = id;
		// The server may have acknowledged our window while the request waited.
		this.receiveWindow.resize(receiveWindowBytes - this.receiveWindow.size);
		this.sendWindow = sendWindow;
		this.initialSendWindow = sendWindow;
	}

	deliverHead(status: number, fields: Fields): void {
		this.#hasHead = true;
		try {
			this.#handler.onHead(status, fields);
		} catch (error) {
			this.#host.handlerFailed(this, error);
		}
	}

	protected override checkHead(): void {}
}
