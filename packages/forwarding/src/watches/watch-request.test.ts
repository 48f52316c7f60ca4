import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WatchListRequestSchema, WatchSetRequestSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { type Resumption, readRequest } from "./watch-request.ts";

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const parsed = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString());

describe("the request of a watch", () => {
	it("is the same, but for its version and bookmarks", () => {
		const request = create(WatchListRequestSchema, {
			type: { group: "demo", groupVersion: "v1", kind: "Artist" },
			...{ namePrefix: "a", afterVersion: "5" },
		});
		const read = readRequest("WatchList", "binary", toBinary(WatchListRequestSchema, request));
		expect([...read.versions]).toEqual([["", "5"]]);
		const resumed = read.resumed(() => ({ after: "123" }));
		expect(fromBinary(WatchListRequestSchema, resumed)).toEqual({
			...request,
			...{ afterVersion: "123", bookmarks: true },
		});
		expect(
			fromBinary(
				WatchListRequestSchema,
				read.resumed(() => "as-requested"),
			),
		).toEqual({ ...request, bookmarks: true });
	});

	it.each(["afterVersion", "after_version"])("in JSON, has its version as %s", (name) => {
		const read = readRequest("WatchList", "json", json({ name_prefix: "a", [name]: "5" }));
		expect([...read.versions]).toEqual([["", "5"]]);
		expect(parsed(read.resumed(() => ({ after: "9" })))).toEqual({
			name_prefix: "a",
			...{ afterVersion: "9", bookmarks: true },
		});
	});

	const resumptions: Readonly<Record<string, Resumption>> = {
		a: { after: "7" },
		b: "omitted",
		c: "as-requested",
	};

	it("of a set, has those watches that go on", () => {
		const set = create(WatchSetRequestSchema, {
			watches: ["a", "b", "c"].map((id) => ({
				id,
				request: { namePrefix: id, afterVersion: id === "c" ? "" : "5" },
			})),
		});
		const expected = [
			{ id: "a", request: { namePrefix: "a", afterVersion: "7", bookmarks: true } },
			{ id: "c", request: { namePrefix: "c", bookmarks: true } },
		];
		const binary = readRequest("WatchSet", "binary", toBinary(WatchSetRequestSchema, set));
		expect([...binary.versions]).toEqual([
			["a", "5"],
			["b", "5"],
			["c", ""],
		]);
		const resumed = binary.resumed((id) => resumptions[id] ?? "omitted");
		expect(fromBinary(WatchSetRequestSchema, resumed)).toMatchObject({ watches: expected });
		const inJson = readRequest("WatchSet", "json", json({ watches: set.watches }));
		expect([...inJson.versions]).toEqual([...binary.versions]);
		expect(parsed(inJson.resumed((id) => resumptions[id] ?? "omitted"))).toMatchObject({
			watches: expected,
		});
	});

	it("tells which watches the client wants bookmarks of", () => {
		const list = create(WatchListRequestSchema, { bookmarks: true });
		const set = create(WatchSetRequestSchema, {
			watches: [
				{ id: "a", request: { bookmarks: true } },
				{ id: "b", request: { bookmarks: false } },
				{ id: "c", request: {} },
			],
		});
		const bookmarked = (...args: Parameters<typeof readRequest>) => [
			...readRequest(...args).bookmarked,
		];
		expect(bookmarked("WatchList", "binary", toBinary(WatchListRequestSchema, list))).toEqual([""]);
		expect(bookmarked("WatchList", "binary", new Uint8Array())).toEqual([]);
		expect(bookmarked("WatchList", "json", json({ bookmarks: true }))).toEqual([""]);
		expect(bookmarked("WatchSet", "binary", toBinary(WatchSetRequestSchema, set))).toEqual(["a"]);
		expect(bookmarked("WatchSet", "json", json({ watches: set.watches }))).toEqual(["a"]);
	});

	it.each(['{"watches":"x"}', '{"watches":[null]}', '{"watches":[{"id":"a"}]}', "{}"])(
		"of a set is not read if it is %j, so that the server refuses it",
		(text) => {
			expect(() => readRequest("WatchSet", "json", Buffer.from(text))).toThrow();
		},
	);

	it("of a set in Protobuf is not read if a watch has no request", () => {
		const set = create(WatchSetRequestSchema, { watches: [{ id: "a" }] });
		expect(() => readRequest("WatchSet", "binary", toBinary(WatchSetRequestSchema, set))).toThrow();
	});

	it.each(["[]", '{"bookmarks":"yes"}', '{"afterVersion":5}', "no JSON"])(
		"is not read if it is %j",
		(text) => {
			expect(() => readRequest("WatchList", "json", Buffer.from(text))).toThrow();
		},
	);
});
