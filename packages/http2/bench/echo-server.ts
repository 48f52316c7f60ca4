/**
 * A server that sends the body of each request back, with trailers: of this package, or of node:http2 if the first
 * argument is "node:http2". It sends its port, and then its processor time in microseconds whenever it is asked.
 */
import http2 from "node:http2";
import { createServer, type Server } from "node:net";
import { type Http2Stream, type StreamHandler, serveHttp2 } from "../src/index.ts";

const fields = ["content-type", "application/grpc"];
const trailers = ["grpc-status", "0"];

class Echo implements StreamHandler {
	readonly #stream: Http2Stream;
	#body: Uint8Array | undefined;

	constructor(stream: Http2Stream) {
		this.#stream = stream;
	}

	onData(bytes: Uint8Array): void {
		this.#stream.consume(bytes.length);
		this.#body = this.#body === undefined ? bytes : Buffer.concat([this.#body, bytes]);
	}

	onEnd(): void {
		this.#stream.respond(200, fields);
		this.#stream.end(this.#body, trailers);
	}

	onReset(): void {}
}

function createNodeServer(): Server {
	const server = http2.createServer();
	server.on("stream", (stream: http2.ServerHttp2Stream) => {
		const chunks: Buffer[] = [];
		stream.on("data", (chunk: Buffer) => chunks.push(chunk));
		stream.on("end", () => {
			const [first = Buffer.alloc(0)] = chunks;
			stream.respond(
				{ ":status": 200, "content-type": "application/grpc" },
				{ waitForTrailers: true },
			);
			stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
			stream.end(chunks.length === 1 ? first : Buffer.concat(chunks));
		});
		stream.on("error", () => {});
	});
	return server;
}

const server =
	process.argv[2] === "node:http2"
		? createNodeServer()
		: createServer((socket) => {
				serveHttp2(socket, {}, (stream) => new Echo(stream));
			});
server.listen(0, "127.0.0.1", () => {
	const address = server.address();
	process.send?.(address !== null && typeof address === "object" ? address.port : 0);
});
process.on("message", () => {
	const { user, system } = process.cpuUsage();
	process.send?.(user + system);
});
