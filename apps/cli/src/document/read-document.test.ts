import { type DescMessage, toJson } from "@bufbuild/protobuf";
import { describeProblem } from "@plinth/documents";
import { parseDocuments, readDocument, type WantedResource } from "@plinth/documents/yaml";
import { describe, expect, it } from "vitest";
import { Film } from "../cinema.fixture.ts";
import { cinemaTypes } from "../known-types.fixture.ts";

const types = cinemaTypes();
const filmSchema: DescMessage = Film.schema;
const place = { partition: "default", namespace: "default" };

/** The problems of all documents, as people read them, and the resources of the good ones. */
function read(text: string) {
	const problems: string[] = [];
	const wanted: WantedResource[] = [];
	for (const source of parseDocuments("films.yaml", text)) {
		const resource = readDocument(source, { types, place });
		problems.push(...source.problems.map((problem) => describeProblem(source.origin, problem)));
		if (resource !== undefined) {
			wanted.push(resource);
		}
	}
	return { problems, wanted };
}

const film = (data: string) => `type: cinema.v1.Film\nname: alien\ndata:\n${data}`;

/** The data as JSON, of a document without problems. */
function dataOf(text: string) {
	const { problems, wanted } = read(text);
	expect(problems).toEqual([]);
	const data = wanted[0]?.data;
	return data && toJson(filmSchema, data, { registry: types.messages, useProtoFieldName: true });
}

describe("a document", () => {
	it("says every shape of field by its name in the proto", () => {
		const text = film(`
  title: Alien
  genre: GENRE_DRAMA
  released_at: 1979-05-25T00:00:00Z
  length: 7020s
  cast:
    - {actor: Weaver, name: Ripley}
  tags: [space, "1979"]
  prizes: {oscar: 1}
  poster: AAEC
  tickets_sold: 9007199254740993
  in_color: true
  rating: 8.5
  sequel_of: {type: Film, name: dark-star}
  extra:
    "@type": cinema.v1.Hall
    seats: 3
  notes: {a: [1, two, null]}
  stand_ins:
    ripley: {actor: Doe}
`);
		expect(dataOf(text)).toEqual({
			title: "Alien",
			genre: "GENRE_DRAMA",
			released_at: "1979-05-25T00:00:00Z",
			length: "7020s",
			cast: [{ actor: "Weaver", name: "Ripley" }],
			tags: ["space", "1979"],
			prizes: { oscar: 1 },
			poster: "AAEC",
			tickets_sold: "9007199254740993",
			in_color: true,
			rating: 8.5,
			sequel_of: {
				type: { group: "cinema", group_version: "v1", kind: "Film" },
				name: "dark-star",
			},
			extra: { "@type": "type.googleapis.com/cinema.v1.Hall", seats: 3 },
			notes: { a: [1, "two", null] },
			stand_ins: { ripley: { actor: "Doe" } },
		});
	});

	it("may be JSON, several in a list, tabs and names in camelCase included", () => {
		const { problems, wanted } = read(
			'[\n\t{"type": "Film", "name": "a", "data": {"inColor": true}},\n\t{"type": "Hall", "name": "b"}\n]\n',
		);
		expect(problems).toEqual([]);
		expect(wanted.map(({ id, source }) => [id.name, source.origin.document])).toEqual([
			["a", 1],
			["b", 2],
		]);
	});

	it("takes units of tenancy that it leaves out from the place, where its scope has them", () => {
		const { wanted } = read("type: Hall\nname: one\n---\ntype: Film\nname: two\nnamespace: late\n");
		expect(wanted.map(({ id }) => id.tenancy)).toMatchObject([
			{ partition: "default", namespace: "" },
			{ partition: "default", namespace: "late" },
		]);
	});

	it("leaves out what it says nothing of", () => {
		const { wanted } = read("type: Film\nname: alien\n");
		expect(Object.keys(wanted[0] ?? {}).sort()).toEqual(["id", "source", "type"]);
	});

	it("takes aliases for what they stand for, and refuses one that leads to itself", () => {
		expect(dataOf(film("  tags: &t [a]\n  title: x\n"))).toMatchObject({ tags: ["a"] });
		const shared = film("  cast: [&r {actor: A}]\n  stand_ins: {x: *r}\n");
		expect(dataOf(shared)).toMatchObject({ stand_ins: { x: { actor: "A" } } });
		const { problems } = read(film("  notes: &n {a: *n}\n"));
		expect(problems.join("\n")).toContain("can't be resolved");
	});

	it("may be followed by empty ones", () => {
		expect(read("---\n---\ntype: Film\nname: a\n---\n").wanted).toHaveLength(1);
	});
});

describe("what is wrong in a document", () => {
	it.each([
		["  titel: x\n", "4:3 (document 1): data.titel: Film has no such field; did you mean title?"],
		["  title: 3\n", "4:10 (document 1): data.title: expected string, got 3: put it in quotes"],
		["  prizes: {oscar: -1}\n", '4:19 (document 1): data.prizes["oscar"]: expected uint32, got -1'],
		["  prizes: [1]\n", "4:11 (document 1): data.prizes: expected a mapping, got a list"],
		["  tags: x\n", '4:9 (document 1): data.tags: expected a list, got "x"'],
		[
			"  cast:\n  - actor: a\n  - aktor: b\n",
			"6:5 (document 1): data.cast[1].aktor: Role has no such field; did you mean actor?",
		],
		[
			"  genre: GENRE_DRAM\n",
			'4:10 (document 1): data.genre: expected a name of Genre, got "GENRE_DRAM"; did you mean GENRE_DRAMA?',
		],
		[
			"  released_at: yesterday\n",
			'4:16 (document 1): data.released_at: expected google.protobuf.Timestamp, got "yesterday"',
		],
		[
			"  novel: x\n  sequel_of: {name: y}\n",
			"5:3 (document 1): data.sequel_of: only one of novel and sequel_of can be set",
		],
		["  in_color: true\n  inColor: false\n", "5:3 (document 1): data.in_color: is set twice"],
		[
			"  sequel_of: {type: Flim, name: x}\n",
			"4:21 (document 1): data.sequel_of.type: unknown type Flim; did you mean Film?",
		],
		[
			"  extra: {seats: 1}\n",
			"4:10 (document 1): data.extra: @type, the name of its message, is required",
		],
		[
			'  extra: {"@type": cinema.v1.Hall, seat: 1}\n',
			"4:36 (document 1): data.extra.seat: Hall has no such field; did you mean seats?",
		],
		["  tickets_sold: 1.5\n", "4:17 (document 1): data.tickets_sold: expected int64, got 1.5"],
	])("is told with its line and path: %j", (data, problem) => {
		expect(read(film(data)).problems).toEqual([`films.yaml:${problem}`]);
	});

	it("is told of all documents at once", () => {
		const { problems } = read(
			"type: Flim\nname: a\n---\nname: b\n---\ntype: Film\nnam: c\ndata: {titel: x}\n---\njust text\n",
		);
		expect(problems).toEqual([
			"films.yaml:1:7 (document 1): type: unknown type Flim; did you mean Film?",
			"films.yaml:4:1 (document 2): type: is required",
			"films.yaml:7:1 (document 3): nam: unknown field; did you mean name?",
			"films.yaml:6:1 (document 3): name: is required",
			'films.yaml:10:1 (document 4): expected a resource: type, name, data, got "just text"',
		]);
	});

	it("is the tenancy of a type that has none", () => {
		expect(read("type: Hall\nname: a\nnamespace: x\n").problems).toEqual([
			"films.yaml:3:12 (document 1): namespace: cinema.v1.Hall is partition-scoped: leave it out",
		]);
	});

	it("is text that is no YAML, or says a key twice", () => {
		expect(read("type: [\n").problems[0]).toMatch(/^films\.yaml:\d+:\d+ \(document 1\): /);
		expect(read("type: Film\nname: a\nname: b\n").problems[0]).toBe(
			"films.yaml:3:1 (document 1): Map keys must be unique",
		);
	});

	it("is metadata that is no text, and an owner without a name", () => {
		expect(
			read("type: Film\nname: a\nmetadata: {year: 1979}\nowner: {type: Hall}\n").problems,
		).toEqual([
			"films.yaml:4:8 (document 1): owner.name: is required",
			'films.yaml:3:18 (document 1): metadata["year"]: expected string, got 1979: put it in quotes',
		]);
	});
});

describe("a path of the server's message", () => {
	it("is found in the document, or the nearest that holds it", () => {
		const [source] = parseDocuments("films.yaml", film("  title: x\n  prizes:\n    oscar: 12\n"));
		if (source === undefined) {
			throw new Error("no document");
		}
		readDocument(source, { types, place });
		expect(source.positionOf('data.prizes["oscar"]')).toEqual({ line: 6, column: 12 });
		expect(source.positionOf('data.prizes["none"]')).toEqual({ line: 5, column: 3 });
		expect(source.positionOf("data.cast[3].actor")).toEqual({ line: 3, column: 1 });
		expect(source.positionOf("owner.type")).toEqual({ line: 1, column: 1 });
	});
});
