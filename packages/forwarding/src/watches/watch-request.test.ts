import {
	create,
	fromBinary,
	fromJsonString,
	type MessageInitShape,
	toBinary,
} from "@bufbuild/protobuf";
import {
	WatchListRequestSchema,
	WatchSetRequest_WatchSchema,
	WatchSetRequestSchema,
} from "@plinth/proto";
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

	it.each([
		'{"bookmarks":true,"bookmarks":false}',
		'{"bookmarks":true,"\\u0062ookmarks":true}',
		'{"afterVersion":"5","after_version":"6"}',
		'{"namePrefix":"a","afterVersion":"5","name_prefix":null}',
		'{"type":{"kind":"A","group":"g","kind":"B"}}',
		'{"watches":[],"watches":[{"id":"a","request":{}}]}',
		'{"watches":[{"id":"a","request":{}},{"id":"b","id":"c","request":{}}]}',
		'{"watches":[{"id":"a","request":{"bookmarks":true,"bookmarks":true}}]}',
	])("is not read if it has a member twice, which servers refuse: %s", (text) => {
		const isSet = text.includes("watches");
		const schema = isSet ? WatchSetRequestSchema : WatchListRequestSchema;
		expect(() => fromJsonString(schema, text)).toThrow(/duplicate|multiple times/);
		const method = isSet ? "WatchSet" : "WatchList";
		expect(() => readRequest(method, "json", Buffer.from(text))).toThrow(/is given twice/);
	});

	it("is read if members of different objects have one name, whatever their values have in them", () => {
		const text = ` {"type" : {"kind":"A","group":"kind"}, "tenancy":{} ,"namePrefix":"a\\"{\\"b"} `;
		const read = readRequest("WatchList", "json", Buffer.from(text));
		expect(parsed(read.resumed(() => "as-requested"))).toEqual({
			...JSON.parse(text),
			bookmarks: true,
		});
		const watches = ["a", "b"].map((id) => ({
			id,
			request: { type: { kind: id }, bookmarks: true },
		}));
		for (const set of [{ watches }, { watches: [watches[0]] }, { watches: [] }]) {
			const readSet = readRequest("WatchSet", "json", json(set));
			expect(parsed(readSet.resumed(() => "as-requested"))).toEqual(set);
		}
	});

	it("of a set in Protobuf is the sum of the requests of a watch, if it has several", () => {
		const watch = (init: MessageInitShape<typeof WatchListRequestSchema>) =>
			toBinary(
				WatchSetRequest_WatchSchema,
				create(WatchSetRequest_WatchSchema, { id: "a", request: init }),
			);
		const bytes = Buffer.concat([
			watch({ afterVersion: "5", bookmarks: true }),
			watch({ namePrefix: "a" }),
		]);
		const set = Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]);
		expect(fromBinary(WatchSetRequestSchema, set).watches).toMatchObject([
			{ id: "a", request: { afterVersion: "5", bookmarks: true, namePrefix: "a" } },
		]);
		const read = readRequest("WatchSet", "binary", set);
		expect([[...read.versions], [...read.bookmarked]]).toEqual([[["a", "5"]], ["a"]]);
	});

	it.each(["[]", '{"bookmarks":"yes"}', '{"afterVersion":5}', "no JSON"])(
		"is not read if it is %j",
		(text) => {
			expect(() => readRequest("WatchList", "json", Buffer.from(text))).toThrow();
		},
	);
});
