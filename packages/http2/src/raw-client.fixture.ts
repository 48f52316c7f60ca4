import { type Duplex, duplexPair } from "node:stream";
import { FakeClock } from "@plinth/runtime/testing";
import { clientPreface, flag, frameType } from "./frames/frame.ts";
import { frame, literals, parseFrames, requestFields, settingsFrame } from "./frames.fixture.ts";
import type {
	Fields,
	Http2Connection,
	Http2Limits,
	Http2Stream,
	RequestHandler,
	RequestHead,
	ResetOrigin,
	StreamHandler,
} from "./http2.ts";
import { RawPeer } from "./raw-peer.fixture.ts";
import { serveHttp2 } from "./serve.ts";

/** What a handler has received of a request. */
export class Recorded implements StreamHandler {
	readonly stream: Http2Stream;
	readonly head: RequestHead;
	readonly events: string[] = [];
	body: Buffer = Buffer.alloc(0);
	trailers: Fields | undefined;
	readonly #consumes: boolean;

	constructor(stream: Http2Stream, head: RequestHead, consumes: boolean) {
		this.stream = stream;
		this.head = head;
		this.#consumes = consumes;
	}

	onData(bytes: Uint8Array): void {
		this.body = Buffer.concat([this.body, bytes]);
		this.events.push(`data ${bytes.length}`);
		if (this.#consumes) {
			this.stream.consume(bytes.length);
		}
	}

	onEnd(trailers: Fields): void {
		this.trailers = trailers;
		this.events.push("end");
	}

	onDrain(): void {
		this.events.push("drain");
	}

	onFinish(): void {
		this.events.push("finish");
	}

	onReset(code: number, origin: ResetOrigin): void {
		this.events.push(`reset ${code} ${origin}`);
	}
}

export interface RawClientOptions {
	readonly limits?: Partial<Http2Limits>;
	/** Whether bodies are consumed when they arrive; true by default. */
	readonly consumes?: boolean;
	/** Whether the client sends its preface and SETTINGS first; true by default. */
	readonly begins?: boolean;
	/** Instead of recording requests. */
	readonly onRequest?: RequestHandler;
}

/** A client that sends bytes as a test chooses, to a server in the same process. */
export class RawClient extends RawPeer {
	readonly clock = new FakeClock();
	readonly connection: Http2Connection;
	readonly socket: Duplex;
	readonly serverSocket: Duplex;
	readonly requests: Recorded[] = [];
	/** What handlers have thrown. */
	readonly errors: unknown[] = [];
	readonly internalErrors: unknown[] = [];
	isEnded = false;
	#rest: Buffer = Buffer.alloc(0);

	constructor(options: RawClientOptions = {}) {
		super();
		[this.socket, this.serverSocket] = duplexPair();
		this.connection = serveHttp2(
			this.serverSocket,
			{
				clock: this.clock,
				onHandlerError: (error) => this.errors.push(error),
				onInternalError: (error) => this.internalErrors.push(error),
				...(options.limits && { limits: options.limits }),
			},
			options.onRequest ??
				((stream, head) => {
					const recorded = new Recorded(stream, head, options.consumes ?? true);
					this.requests.push(recorded);
					return recorded;
				}),
		);
		this.socket.on("data", (chunk: Buffer) => {
			const { frames, rest } = parseFrames(Buffer.concat([this.#rest, chunk]));
			this.#rest = rest;
			this.frames.push(...frames);
		});
		this.socket.on("end", () => {
			this.isEnded = true;
		});
		this.socket.on("error", () => {});
		if (options.begins ?? true) {
			this.socket.write(Buffer.concat([clientPreface, settingsFrame()]));
		}
	}

	/** Sends bytes, and resolves when the server has processed them. */
	async send(...bytes: readonly Uint8Array[]): Promise<void> {
		this.socket.write(Buffer.concat(bytes));
		await settle();
	}

	/** HEADERS of a usual request, with further fields. */
	headers(id: number, endStream = true, ...fields: Fields): Buffer {
		const flags = flag.endHeaders | (endStream ? flag.endStream : 0);
		return frame(frameType.headers, flags, id, literals(...requestFields, ...fields));
	}

	/** The last request. */
	get request(): Recorded {
		const recorded = this.requests.at(-1);
		if (recorded === undefined) {
			throw new Error("no request has come");
		}
		return recorded;
	}
}

/** Resolves when all that happens without time has happened. */
export async function settle(): Promise<void> {
	for (let turn = 0; turn < 6; turn++) {
		await new Promise((resolve) => setImmediate(resolve));
	}
}
