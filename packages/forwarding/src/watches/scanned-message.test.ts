import { create, toBinary } from "@bufbuild/protobuf";
import { WatchEventSchema, WatchSetEventSchema } from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MalformedMessage } from "../messages/protobuf-fields.ts";
import { binaryScanner } from "./scan-binary.ts";
import { jsonScanner } from "./scan-json.ts";

const json = (text: string) => Buffer.from(text);

describe("the scanner of JSON", () => {
	const scan = jsonScanner("WatchList");

	it("reads what it needs, whatever the data and the order of members", () => {
		fc.assert(
			fc.property(fc.jsonValue(), fc.boolean(), (data, isPretty) => {
				const value = {
					version: "8",
					upsert: {
						resource: { data, version: "8", id: { tenancy: { partition: "p" }, name: "a" } },
					},
				};
				const text = JSON.stringify(value, undefined, isPretty ? "\t" : undefined);
				expect(scan(json(text)).content).toEqual({
					kind: "change",
					change: "upsert /p//a@8",
					version: "8",
					shows: "8",
				});
			}),
		);
	});

	it("knows the end of a snapshot and bookmarks, but not what is new", () => {
		const contentOf = (text: string) => scan(json(text)).content;
		expect(contentOf('{"endOfSnapshot":{},"version":"3"}')).toMatchObject({
			kind: "end-of-snapshot",
			version: "3",
		});
		expect(contentOf('{"bookmark":{ } , "version" : "4"}')).toMatchObject({
			kind: "bookmark",
			version: "4",
		});
		expect(contentOf('{"renamed":[{"from":"a"}],"version":"5"}')).toMatchObject({
			kind: "unknown",
			version: "5",
		});
		expect(contentOf('{"upsert":{}}')).toMatchObject({ kind: "unknown" });
	});

	it("reads the id of a watch with its escapes", () => {
		const scanSet = jsonScanner("WatchSet");
		expect(scanSet(json('{"watchId":"a\\"\\u00e9","event":{"bookmark":{}}}'))).toMatchObject({
			watchId: 'a"é',
			content: { kind: "bookmark" },
		});
		expect(scanSet(json('{"end":{"code":10},"watchId":"b"}'))).toEqual({
			watchId: "b",
			content: { kind: "end", code: 10 },
		});
		expect(scanSet(json('{"watchId":"b","end":{"message":"x","code": 14 }}')).content).toEqual({
			...{ kind: "end", code: 14 },
		});
		expect(scanSet(json('{"watchId":"b","end":{}}')).content).toEqual({ kind: "end", code: 0 });
	});

	it.each(["", "[]", "{", '{"upsert":', '{"upsert":{"resource":[}}', '{"version":5}', '{"a"}'])(
		"refuses %j",
		(text) => {
			expect(() => scan(json(text))).toThrow(MalformedMessage);
		},
	);
});

describe("the scanner of Protobuf", () => {
	it("reads what it needs, whatever the data", () => {
		fc.assert(
			fc.property(fc.uint8Array(), fc.string(), (value, watchId) => {
				const resource = {
					id: { name: "a", tenancy: { partition: "p", namespace: "n" }, region: "eu" },
					...{ version: "7", data: { typeUrl: "x", value } },
				};
				const event = create(WatchEventSchema, {
					event: { case: "delete", value: { resource } },
					version: "8",
				});
				const content = { kind: "change", change: "delete eu/p/n/a@7", version: "8", shows: "8" };
				expect(binaryScanner("WatchList")(toBinary(WatchEventSchema, event)).content).toEqual(
					content,
				);
				const set = create(WatchSetEventSchema, {
					watchId,
					content: { case: "event", value: event },
				});
				expect(binaryScanner("WatchSet")(toBinary(WatchSetEventSchema, set))).toEqual({
					...{ watchId, content },
				});
				const end = create(WatchSetEventSchema, {
					...{ watchId, content: { case: "end", value: { code: 14, message: watchId } } },
				});
				expect(binaryScanner("WatchSet")(toBinary(WatchSetEventSchema, end))).toEqual({
					...{ watchId, content: { kind: "end", code: 14 } },
				});
			}),
		);
	});

	it("throws nothing but MalformedMessage, whatever the bytes", () => {
		fc.assert(
			fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
				for (const scan of [binaryScanner("WatchList"), binaryScanner("WatchSet")]) {
					try {
						scan(bytes);
					} catch (failure) {
						expect(failure).toBeInstanceOf(MalformedMessage);
					}
				}
			}),
		);
	});
});
