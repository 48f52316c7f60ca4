/*
 * The floor of a server on node:http2: it reads a request, and sends the bytes of such a response, encoded once. A
 * write to the watched namespace is also sent to its watches.
 */

import { createServer, type ServerHttp2Stream } from "node:http2";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
	ListResponseSchema,
	ReadResponseSchema,
	type Resource,
	WatchEventSchema,
	WriteResponseSchema,
} from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { Artist, artist } from "../testdata/music.ts";
import { listed, watchedNamespace, writers } from "./harness/content.ts";

const ulid = "01JZ8M4Q9W3T5R7Y1N2B6C8D0F";
const version = "123456";

function stored(name: string): Resource {
	const resource = artist(name, "jazz 123456");
	resource.id = idOf(Artist, name, {}, ulid);
	return Object.assign(resource, { version, generation: ulid });
}

/** A message as gRPC frames it: a byte for compression, and its length. */
function framed<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Buffer {
	const message = toBinary(schema, create(schema, init));
	const prefix = Buffer.alloc(5);
	prefix.writeUInt32BE(message.length, 1);
	return Buffer.concat([prefix, message]);
}

function snapshotOf(count: number): Buffer {
	const end = framed(WatchEventSchema, { event: { case: "endOfSnapshot", value: {} }, version });
	return Buffer.concat([...resources.slice(0, count).map((each) => upsert(each)), end]);
}

function upsert(resource: Resource, last?: string): Buffer {
	return framed(WatchEventSchema, {
		event: { case: "upsert", value: { resource } },
		...(last !== undefined && { version: last }),
	});
}

const resources = Array.from({ length: listed }, (_, index) => stored(`r${index}`));
const resource = stored("r0");
const service = "/plinth.resource.v1.ResourceService/";
const responses: ReadonlyMap<unknown, Buffer> = new Map([
	[`${service}Read`, framed(ReadResponseSchema, { resource })],
	[`${service}Write`, framed(WriteResponseSchema, { resource })],
	[`${service}List`, framed(ListResponseSchema, { resources, version })],
]);
const listedSnapshot = snapshotOf(listed);
const watchedSnapshot = snapshotOf(writers);
const event = upsert(resource, version);
const watches = new Set<ServerHttp2Stream>();

function respond(stream: ServerHttp2Stream, path: unknown, request: Buffer): void {
	const isWatched = request.includes(watchedNamespace);
	const response = responses.get(path);
	const headers = { ":status": 200, "content-type": "application/grpc+proto" };
	if (response === undefined) {
		stream.respond(headers);
		stream.write(isWatched ? watchedSnapshot : listedSnapshot);
		if (isWatched) {
			watches.add(stream);
			stream.on("close", () => watches.delete(stream));
		}
		return;
	}
	stream.respond(headers, { waitForTrailers: true });
	stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
	stream.end(response);
	if (isWatched) {
		for (const watch of watches) {
			watch.write(event);
		}
	}
}

// As the product allows; 64 lists on one connection exceed the default.
const server = createServer({ maxSessionMemory: 64 });
server.on("stream", (stream: ServerHttp2Stream, headers) => {
	const chunks: Buffer[] = [];
	stream.on("data", (chunk: Buffer) => chunks.push(chunk));
	stream.on("end", () => respond(stream, headers[":path"], Buffer.concat(chunks)));
	// Clients cancel watches.
	stream.on("error", () => {});
});
server.listen(0, "127.0.0.1", () => {
	const address = server.address();
	if (typeof address !== "object" || address === null) {
		throw new Error("the server listens on no port");
	}
	process.stdout.write(`http://127.0.0.1:${address.port}\n`);
});
