import { expect, it } from "vitest";
import { liveType } from "../live-type.fixture.ts";
import { tableProblems } from "./table-problems.ts";

it("accepts paths to fields, through messages, lists and maps", () => {
	const columns = ["text", "words", "part.note", "parts.of.count", "labels", "labels.app", "at"];
	expect(tableProblems([liveType({ columns })])).toEqual([]);
	expect(tableProblems([liveType()])).toEqual([]);
});

it("tells all paths that can't work, with the type and the reason", () => {
	const columns = [
		"nope",
		"",
		"part.nope",
		"text.length",
		"at.seconds",
		"labels.app.more",
		"part.",
	];
	const path = (text: string) => `type live.v1.Thing: (plinth.type.v1.table) path "${text}": `;
	expect(tableProblems([liveType({ columns })])).toEqual([
		`${path("nope")}acme.live.v1.Thing has no field "nope"`,
		`${path("")}it is empty`,
		`${path("part.nope")}acme.live.v1.Part has no field "nope"`,
		`${path("text.length")}the field acme.live.v1.Thing.text has no fields`,
		`${path("at.seconds")}the field acme.live.v1.Thing.at has no fields`,
		`${path("labels.app.more")}the field acme.live.v1.Thing.labels has no fields`,
		`${path("part.")}acme.live.v1.Part has no field ""`,
	]);
});
