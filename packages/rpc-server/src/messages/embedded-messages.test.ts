import { create, createRegistry, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import {
	IDSchema,
	ReadResponseSchema,
	ResourceService,
	type WatchEvent,
	WatchEventSchema,
	type WatchSetEvent,
	WatchSetEventSchema,
} from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCodecs } from "./codec.ts";
import { embeddedMessages } from "./embedded-messages.ts";
import { shareEncodings } from "./shared-encodings.ts";

const jsonOptions = { registry: createRegistry(IDSchema) };
const limits = { readMaxBytes: 1_024, writeMaxBytes: 4_096 };
const codecsOf = (method: "watchSet" | "watchList", more: object = {}) =>
	createCodecs(ResourceService.method[method], { ...limits, jsonOptions, ...more });

const events: fc.Arbitrary<WatchEvent> = fc
	.record({ name: fc.string({ unit: "grapheme" }), version: fc.string(), isBookmark: fc.boolean() })
	.map(({ name, version, isBookmark }) => {
		const data = anyPack(IDSchema, create(IDSchema, { name }));
		const value = { resource: { id: { name }, data } };
		return create(WatchEventSchema, {
			event: isBookmark ? { case: "bookmark", value: {} } : { case: "upsert", value },
			version,
		});
	});

const of = (watchId: string, value: WatchEvent): WatchSetEvent => ({
	$typeName: "plinth.resource.v1.WatchSetEvent",
	watchId,
	content: { case: "event", value },
});

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
/** The bytes in an envelope, after its head was checked. */
function content(envelope: Uint8Array): Buffer {
	const bytes = Buffer.from(envelope);
	expect([bytes[0], bytes.readUInt32BE(1)]).toEqual([0, bytes.length - 5]);
	return bytes.subarray(5);
}

describe("a message with a shared message in its last field", () => {
	it.each([
		["by default", {}],
		["with names of the proto", { jsonOptions: { ...jsonOptions, useProtoFieldName: true } }],
		["with all fields", { jsonOptions: { ...jsonOptions, alwaysEmitImplicit: true } }],
		["with options of the binary format", { binaryOptions: {} }],
	])("has the bytes that it would have without sharing, %s", (_name, options) => {
		const { binary, json } = codecsOf("watchSet", options);
		const used = "jsonOptions" in options ? options.jsonOptions : jsonOptions;
		fc.assert(
			fc.property(fc.string(), events, fc.boolean(), (watchId, event, isShared) => {
				const message = of(watchId, isShared ? shareEncodings(event) : event);
				expect(hex(content(binary.envelope(message)))).toBe(
					hex(toBinary(WatchSetEventSchema, message)),
				);
				expect(content(json.envelope(message)).toString()).toBe(
					toJsonString(WatchSetEventSchema, message, used),
				);
			}),
		);
	});

	it("shares its encodings with the streams of the message itself", () => {
		const encoded: number[] = [];
		const event = shareEncodings(
			create(WatchEventSchema, { version: "7", event: { case: "bookmark", value: {} } }),
			(bytes) => encoded.push(bytes),
		);
		for (const form of ["binary", "json"] as const) {
			codecsOf("watchSet")[form].envelope(of("a", event));
			codecsOf("watchList")[form].envelope(event);
			codecsOf("watchSet")[form].envelope(of("b", event));
		}
		expect(encoded).toHaveLength(2);
	});

	it("has a size limit of its own", () => {
		const event = create(WatchEventSchema, { version: "x".repeat(limits.writeMaxBytes - 50) });
		const { binary, json } = codecsOf("watchSet");
		for (const codec of [binary, json]) {
			shareEncodings(event);
			codec.envelope(of("a", event));
			expect(() => codec.envelope(of("x".repeat(60), event))).toThrow(
				/exceeds limit|is larger than/,
			);
		}
	});

	it("fails as it would without sharing if the message can't be encoded", () => {
		const data = { $typeName: "google.protobuf.Any", typeUrl: "a/unknown.Type" } as const;
		const event = create(WatchEventSchema, {
			event: {
				case: "upsert",
				value: { resource: { data: { ...data, value: Uint8Array.of(1) } } },
			},
		});
		const failureOf = (message: Message) => {
			try {
				codecsOf("watchSet").json.envelope(message);
			} catch (failure) {
				return String(failure);
			}
			throw new Error("it was encoded");
		};
		const unshared = failureOf(of("a", event));
		expect(failureOf(of("a", shareEncodings(event)))).toBe(unshared);
	});
});

describe("messages whose last field is not a message, or not alone", () => {
	it("embed nothing", () => {
		expect(embeddedMessages(WatchEventSchema)).toBeUndefined();
		const find = embeddedMessages(WatchSetEventSchema);
		const event = create(WatchEventSchema);
		expect(find?.(of("a", event))?.message).toBe(event);
		expect(find?.(create(WatchSetEventSchema, { watchId: "a" }))).toBeUndefined();
		const unknown = { no: 900, wireType: 0, data: Uint8Array.of(1) };
		expect(find?.({ ...of("a", event), $unknown: [unknown] })).toBeUndefined();
		expect(embeddedMessages(ReadResponseSchema)?.(create(ReadResponseSchema))).toBeUndefined();
	});
});
