import { type Duplex, duplexPair } from "node:stream";
import { FakeClock } from "@plinth/runtime/testing";
import { connectHttp2 } from "../connect.ts";
import { clientPreface, flag, frameType } from "../frames/frame.ts";
import { frame, literals, parseFrames, settingsFrame } from "../frames.fixture.ts";
import type {
	Fields,
	Http2ClientConnection,
	Http2ClientStream,
	Http2CloseReason,
	Http2Limits,
	ResetOrigin,
	ResponseHandler,
} from "../http2.ts";
import { settle } from "../raw-client.fixture.ts";
import { RawPeer } from "../raw-peer.fixture.ts";

/** What has been received of a response. */
export class RecordedResponse implements ResponseHandler {
	readonly events: string[] = [];
	readonly body: Buffer[] = [];
	stream: Http2ClientStream | undefined;
	/** Whether data is consumed when it arrives. */
	consumes = true;

	onHead(status: number, fields: Fields): void {
		this.events.push(`head ${[status, ...fields].join(" ")}`);
	}

	onData(bytes: Uint8Array): void {
		this.body.push(Buffer.from(bytes));
		this.events.push(`data ${bytes.length}`);
		if (this.consumes) {
			this.stream?.consume(bytes.length);
		}
	}

	onEnd(trailers: Fields): void {
		this.events.push(["end", ...trailers].join(" "));
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

/** A server that sends bytes as a test chooses, to a client in the same process. */
export class RawServer extends RawPeer {
	readonly clock = new FakeClock();
	readonly connection: Http2ClientConnection;
	readonly socket: Duplex;
	/** What the connection has reported, in order. */
	readonly reports: string[] = [];
	readonly internalErrors: unknown[] = [];
	/** Called when the connection reports a GOAWAY. */
	atGoaway: (() => void) | undefined;
	isEnded = false;
	ending: Http2CloseReason | undefined;
	#rest: Buffer = Buffer.alloc(0);
	#prefaceBytes = clientPreface.length;

	constructor(limits: Partial<Http2Limits> = {}) {
		super();
		const [socket, clientSocket] = duplexPair();
		this.socket = socket;
		this.connection = connectHttp2(clientSocket, {
			clock: this.clock,
			limits,
			onSettings: () => this.reports.push("settings"),
			onGoaway: (lastStreamId, code, debugData) => {
				this.reports.push(`goaway ${lastStreamId} ${code} ${Buffer.from(debugData)}`.trim());
				this.atGoaway?.();
			},
			onEnding: (reason) => {
				this.ending = reason;
				this.reports.push("ending");
			},
			onInternalError: (error) => this.internalErrors.push(error),
		});
		socket.on("data", (chunk: Buffer) => {
			const skipped = Math.min(this.#prefaceBytes, chunk.length);
			this.#prefaceBytes -= skipped;
			const bytes = Buffer.concat([this.#rest, chunk.subarray(skipped)]);
			const { frames, rest } = parseFrames(bytes);
			this.#rest = rest;
			this.frames.push(...frames);
		});
		socket.on("end", () => {
			this.isEnded = true;
		});
		socket.on("error", () => {});
	}

	/** Makes a request without a body, or one whose body is not ended. */
	request({ fields = requestHead, ends = true, consumes = true } = {}): RecordedResponse {
		const response = new RecordedResponse();
		response.consumes = consumes;
		response.stream = this.connection.request(fields, response);
		if (ends) {
			response.stream.end();
		}
		return response;
	}

	/** Sends bytes, and resolves when the client has processed them. */
	async send(...bytes: readonly Uint8Array[]): Promise<void> {
		this.socket.write(Buffer.concat(bytes));
		await settle();
	}
}

/** A usual request. */
export const requestHead: Fields = [
	...[":method", "POST", ":scheme", "http", ":authority", "localhost", ":path", "/echo"],
	...["content-type", "application/grpc", "te", "trailers"],
];

/** HEADERS of a response, or trailers, with these fields. */
export function headers(id: number, fields: Fields, endStream = false): Buffer {
	const flags = flag.endHeaders | (endStream ? flag.endStream : 0);
	return frame(frameType.headers, flags, id, literals(...fields));
}

/** A server that has begun. */
export async function begun(
	settings: readonly (readonly [number, number])[] = [],
	limits: Partial<Http2Limits> = {},
): Promise<RawServer> {
	const server = new RawServer(limits);
	await server.send(settingsFrame(...settings), frame(frameType.settings, flag.ack, 0));
	return server;
}
