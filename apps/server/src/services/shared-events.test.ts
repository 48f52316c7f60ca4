import { create, fromBinary, fromJsonString, toBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import {
	ResourceService,
	type WatchEvent,
	WatchEventSchema,
	type WatchListRequest,
	WatchListRequestSchema,
} from "@plinth/proto";
import { TypeRegistry, typeOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { artist, musicModule, Artist as StoredArtist } from "../../testdata/music.ts";
import { openSession } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const registry = new TypeRegistry([StoredArtist]).messages();

/** The formats in which a stream can be read: its content type, and how its messages are written and read. */
const formats = {
	gRPC: ["application/grpc", false],
	"gRPC with JSON": ["application/grpc+json", true],
	"gRPC-Web": ["application/grpc-web+proto", false],
	"Connect, binary": ["application/connect+proto", false],
	"Connect, JSON": ["application/connect+json", true],
} as const;

/** The envelopes of a watch, without their heads, until there are that many. */
async function envelopes(
	address: string,
	contentType: string,
	body: Uint8Array,
	count: number,
	opened: () => void,
): Promise<readonly Buffer[]> {
	const stream = openSession(address).request({
		":method": "POST",
		":path": `/${ResourceService.typeName}/WatchList`,
		"content-type": contentType,
		te: "trailers",
	});
	const head = Buffer.alloc(5);
	head.writeUInt32BE(body.byteLength, 1);
	stream.end(Buffer.concat([head, body]));
	const found: Buffer[] = [];
	let rest = Buffer.alloc(0);
	for await (const chunk of stream) {
		rest = Buffer.concat([rest, chunk]);
		while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
			const end = 5 + rest.readUInt32BE(1);
			found.push(rest.subarray(5, end));
			rest = rest.subarray(end);
		}
		if (found.length > 0) {
			opened();
		}
		if (found.length === count) {
			break;
		}
	}
	return found;
}

it.each(Object.entries(formats))(
	"watchers receive the same bytes, which are those of the message: %s",
	async (_name, [contentType, isJson]) => {
		const { address } = await startServer({ modules: [musicModule()] });
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		const request: WatchListRequest = create(WatchListRequestSchema, {
			type: typeOf(StoredArtist.type),
		});
		const body = isJson
			? Buffer.from(toJsonString(WatchListRequestSchema, request))
			: toBinary(WatchListRequestSchema, request);
		// The end of the snapshot, and a burst of events.
		const names = Array.from({ length: 40 }, (_, index) => `artist-${index}`);
		const all = [0, 1, 2].map(() => {
			const opened = Promise.withResolvers<void>();
			const read = envelopes(address, contentType, body, 1 + names.length, opened.resolve);
			return { opened: opened.promise, read };
		});
		await Promise.all(all.map(({ opened }) => opened));
		await Promise.all(names.map((name) => client.write({ resource: artist(name) })));
		const [first = [], ...others] = await Promise.all(all.map(({ read }) => read));
		for (const other of others) {
			expect(other).toEqual(first);
		}
		const events = first.map(
			(bytes): WatchEvent =>
				isJson
					? fromJsonString(WatchEventSchema, bytes.toString(), { registry })
					: fromBinary(WatchEventSchema, bytes),
		);
		expect(
			events.map((event) =>
				isJson
					? toJsonString(WatchEventSchema, event, { registry })
					: Buffer.from(toBinary(WatchEventSchema, event)).toString("hex"),
			),
		).toEqual(first.map((bytes) => bytes.toString(isJson ? "utf8" : "hex")));
		const received = events.map(({ event }) =>
			event.case === "upsert" ? event.value.resource?.id?.name : event.case,
		);
		expect(received.toSorted()).toEqual(["endOfSnapshot", ...names].toSorted());
		const versions = events.map(({ version }) => Number(version));
		expect(versions).toEqual(versions.toSorted((a, b) => a - b));
	},
);
