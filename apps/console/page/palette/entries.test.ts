import { expect, it } from "vitest";
import { namespaceType } from "../table/row.fixture.ts";
import { matchingEntries, type PaletteEntry, resourceSearchOf } from "./entries.ts";

const entries: readonly PaletteEntry[] = ["Overview", "Service view", "Revert", "Interval"].map(
	(title) => ({ key: title, title, kind: "page", run: () => {} }),
);

it("finds the entries with all words: first those that begin with the text", () => {
	const found = (text: string) => matchingEntries(entries, text).map(({ title }) => title);
	expect(found("v")).toEqual(["Service view", "Overview", "Revert", "Interval"]);
	expect(found("over")).toEqual(["Overview"]);
	expect(found("VIEW ser")).toEqual(["Service view"]);
	expect(found("nothing")).toEqual([]);
	expect(found("")).toHaveLength(4);
});

it("searches resources by a type, or its beginning, and the beginning of a name", () => {
	const types = { all: [namespaceType] };
	expect(resourceSearchOf(types, "name web-1")).toEqual({
		type: namespaceType,
		namePrefix: "web-1",
	});
	for (const text of ["namespace", "service web", "namespace web more", "namespace WEB_1", ""]) {
		expect(resourceSearchOf(types, text)).toBe(undefined);
	}
});
