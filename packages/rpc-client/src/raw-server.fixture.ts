import { Buffer } from "node:buffer";
import { once } from "node:events";
import {
	createServer,
	type Http2Server,
	type IncomingHttpHeaders,
	type ServerHttp2Session,
	type ServerHttp2Stream,
} from "node:http2";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";
import { type PongSchema as Pong, PongSchema } from "../testdata/src/gen/probe_pb.ts";

/** Responds to one call, in any way. */
export type Respond = (
	stream: ServerHttp2Stream,
	path: string,
	headers: IncomingHttpHeaders,
) => void;

/** An HTTP/2 server that knows nothing about gRPC. */
export interface RawServer extends AsyncDisposable {
	readonly baseUrl: string;
	readonly server: Http2Server;
	/** The sessions that clients have opened. */
	readonly sessions: readonly ServerHttp2Session[];
	/** The codes that clients have reset streams with, in order. */
	readonly resets: readonly number[];
}

/** Opens a server that passes each call to `respond`. */
export async function openRawServer(respond: Respond): Promise<RawServer> {
	const server = createServer({ maxSendHeaderBlockLength: 1_000_000 });
	const sessions: ServerHttp2Session[] = [];
	const resets: number[] = [];
	server.on("session", (session) => {
		sessions.push(session);
		session.on("error", () => {});
	});
	server.on("stream", (stream: ServerHttp2Stream, headers) => {
		stream.on("error", () => {});
		stream.on("aborted", () => resets.push(stream.rstCode ?? 0));
		stream.resume();
		respond(stream, headers[":path"] ?? "", headers);
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const address = server.address();
	if (address === null || typeof address === "string") {
		throw new Error("the server has no port");
	}
	return {
		baseUrl: `http://127.0.0.1:${address.port}`,
		server,
		sessions,
		resets,
		async [Symbol.asyncDispose]() {
			for (const session of sessions) {
				session.destroy();
			}
			server.close();
			await once(server, "close");
		},
	};
}

/** A message with its prefix. */
export function framed(init: MessageInitShape<typeof Pong>, flags = 0): Buffer {
	return withPrefix(toBinary(PongSchema, create(PongSchema, init)), flags);
}

/** Bytes with the prefix of a message. */
export function withPrefix(bytes: Uint8Array, flags = 0, length = bytes.length): Buffer {
	const prefix = Buffer.alloc(5);
	prefix[0] = flags;
	prefix.writeUInt32BE(length, 1);
	return Buffer.concat([prefix, bytes]);
}

/** The headers of a well-formed response. */
export const head = { ":status": 200, "content-type": "application/grpc+proto" };

/** Sends headers, bytes and trailers. */
export function send(
	stream: ServerHttp2Stream,
	bytes: Uint8Array,
	trailers: Readonly<Record<string, string>> = { "grpc-status": "0" },
	headers: Readonly<Record<string, string | number>> = head,
): void {
	stream.respond({ ...headers }, { waitForTrailers: true });
	stream.once("wantTrailers", () => stream.sendTrailers({ ...trailers }));
	stream.end(bytes);
}
