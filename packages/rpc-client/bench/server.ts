/** The server of the bench, in a process of its own: prints its port, and responds as cheaply as it can. */
import { Buffer } from "node:buffer";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { PongSchema } from "../testdata/src/gen/probe_pb.ts";

/** The messages of a stream, and how many of them are written at once. */
const streamLength = 10_000;
const batch = 100;

const message = toBinary(PongSchema, create(PongSchema, { text: "a response", number: 1 }));
const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
const batched = Buffer.concat(new Array(batch).fill(framed));

const server = createServer();
server.on("stream", (stream: ServerHttp2Stream, headers) => {
	stream.on("error", () => {});
	stream.resume();
	stream.once("end", () => {
		stream.respond(
			{ ":status": 200, "content-type": "application/grpc+proto" },
			{ waitForTrailers: true },
		);
		stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
		if (headers[":path"]?.endsWith("/Unary")) {
			stream.end(framed);
		} else {
			writeBatches(stream, streamLength / batch);
		}
	});
});
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));

function writeBatches(stream: ServerHttp2Stream, count: number): void {
	for (let left = count; left > 0; left--) {
		if (!stream.write(batched)) {
			stream.once("drain", () => writeBatches(stream, left - 1));
			return;
		}
	}
	stream.end();
}
