import { expect, it } from "vitest";
import { yamlCursor, yamlKeyAt } from "./yaml-cursor.ts";

it.each([
	["", [], undefined, ""],
	["type: cinema.v1.F", [], "type", "cinema.v1.F"],
	["type: a\nda", [], undefined, "da"],
	["data:\n  ti", ["data"], undefined, "ti"],
	["data:\n  title: x\n\n  # a comment\n  ye", ["data"], undefined, "ye"],
	["data:\n  a:\n    b: 1\n  c: ", ["data"], "c", ""],
	["data:\n  ports:\n    http: 80\n    ", ["data", "ports"], undefined, ""],
	["data:\n  cast:\n    - name: x\n      ro", ["data", "cast"], undefined, "ro"],
	["data:\n  cast:\n  - name: x\n  - na", ["data", "cast"], undefined, "na"],
	["data:\n  cast:\n  - name: x\n    role: LE", ["data", "cast"], "role", "LE"],
	["data:\n  cast:\n  - name: x\n  yea", ["data"], undefined, "yea"],
	['metadata:\n  "a.b": x\n  c', ["metadata"], undefined, "c"],
] as const)("the end of %j is in %j", (text, path, key, word) => {
	expect(yamlCursor(text)).toEqual({ path, key, word });
});

it("is unknown within other values", () => {
	expect(yamlCursor("data: { a: 1, b")).toBe(undefined);
	expect(yamlCursor('title: "x y')).toBe(undefined);
});

it.each([
	["da|ta:", [], "data"],
	["|data:", [], "data"],
	["data|:", [], "data"],
	["data:\n  a:\n    b: 1\n  ti|tle: x\n  c: 2", ["data"], "title"],
	["data:\n  cast:\n  - na|me: x\n    role: y", ["data", "cast"], "name"],
	['data:\n  "ti|tle": x', ["data"], "title"],
] as const)("the key at %j is in %j", (text, path, key) => {
	const position = text.indexOf("|");
	const found = yamlKeyAt(text.replace("|", ""), position);
	expect(found).toMatchObject({ path, key });
	expect(text.replace("|", "").slice(found?.from, found?.to).replaceAll('"', "")).toBe(key);
});

it.each(["data: |x", "data:\n|  title: x", "data:\n  - |x", "data:\n|", "# da|ta: x"])(
	"there is no key at %j",
	(text) => {
		expect(yamlKeyAt(text.replace("|", ""), text.indexOf("|"))).toBe(undefined);
	},
);
