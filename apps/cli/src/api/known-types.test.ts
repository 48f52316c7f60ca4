import { KnownTypes, tenancyAt } from "@plinth/documents";
import { describe, expect, it } from "vitest";
import { Hall, HallV2 } from "../cinema.fixture.ts";
import { cinemaTypes } from "../known-types.fixture.ts";

const types = cinemaTypes();

describe("a type by a word", () => {
	it.each(["cinema.v1.Film", "cinema.v1.film", "cinema.Film", "Film", "film", "films"])(
		"is found as %s",
		(word) => {
			expect(types.find(word).key).toBe("cinema.v1.Film");
		},
	);

	it.each([
		["Films1", "did you mean Film?"],
		["cinema.v1.Flim", "did you mean cinema.v1.Film?"],
		["x", "`plinth types` lists those of the server"],
	])("is suggested, or where to look: %s", (word, hint) => {
		expect(() => types.find(word)).toThrow(`unknown type ${word}`);
		expect(() => types.find(word)).toThrow(hint);
	});

	it("is not guessed where several fit, but for one of exactly that name", () => {
		const both = new KnownTypes([Hall, HallV2], types.messages);
		expect(() => both.find("hall")).toThrow(
			"hall is ambiguous, use the full name: cinema.v1.Hall, cinema.v2.Hall",
		);
		expect(both.find("cinema.v2.Hall").key).toBe("cinema.v2.Hall");
	});

	it("is not there where the server tells of none", () => {
		const none = new KnownTypes([], types.messages);
		expect(() => none.find("Film")).toThrow("the server has no types that the caller may use");
	});
});

describe("where a list looks", () => {
	it("has the units of the type's scope", () => {
		const place = { partition: "p", namespace: "n" };
		expect(tenancyAt(types.find("Film"), place, false)).toEqual(place);
		expect(tenancyAt(types.find("Film"), place, true)).toEqual({ partition: "*", namespace: "*" });
		expect(tenancyAt(types.find("Hall"), place, false)).toEqual({ partition: "p", namespace: "" });
	});
});
