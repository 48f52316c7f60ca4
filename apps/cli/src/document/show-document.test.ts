import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { documentOf } from "@plinth/documents";
import { parseDocuments, readDocument, toYaml } from "@plinth/documents/yaml";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { idOf, resourceOf } from "@plinth/resource";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	FilmSchema,
	Genre,
	HallSchema,
	RoleSchema,
} from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Hall } from "../cinema.fixture.ts";
import { cinemaTypes } from "../known-types.fixture.ts";

const types = cinemaTypes();

function readBack(resource: Resource) {
	const [source] = parseDocuments("shown.yaml", toYaml(documentOf(resource, types)));
	const place = { partition: "default", namespace: "default" };
	const wanted = source && readDocument(source, { types, place });
	expect(source?.problems).toEqual([]);
	return wanted;
}

describe("a resource as a document", () => {
	it("is what people read: types, enums and times as text, fields by their names in the proto", () => {
		const resource = resourceOf(Film, {
			id: idOf(Film, "alien"),
			owner: idOf(Hall, "one"),
			metadata: { team: "space" },
			data: create(FilmSchema, {
				title: "Alien",
				genre: Genre.DRAMA,
				releasedAt: { seconds: 296438400n, nanos: 0 },
				length: { seconds: 7020n, nanos: 0 },
				story: {
					case: "sequelOf",
					value: { type: Film.type, name: "dark-star" },
				},
			}),
		});
		resource.version = "7";
		resource.status = {
			critic: {
				$typeName: "plinth.resource.v1.Status",
				observedGeneration: "",
				conditions: [],
				updatedAt: { $typeName: "google.protobuf.Timestamp", seconds: 1n, nanos: 0 },
			},
		};
		expect(toYaml(documentOf(resource, types))).toBe(`type: cinema.v1.Film
name: alien
partition: default
namespace: default
owner:
  type: cinema.v1.Hall
  name: one
  partition: default
version: "7"
metadata:
  team: space
data:
  title: Alien
  genre: GENRE_DRAMA
  released_at: 1979-05-25T00:00:00Z
  length: 7020s
  sequel_of:
    type: cinema.v1.Film
    name: dark-star
status:
  critic:
    updated_at: 1970-01-01T00:00:01Z
`);
	});

	it("shows data of a message that the server told nothing of as bytes", () => {
		const resource = create(ResourceSchema, {
			data: { typeUrl: "type.googleapis.com/some.Other", value: new Uint8Array([1, 2]) },
		});
		expect(documentOf(resource, types).data).toEqual({
			"@type": "type.googleapis.com/some.Other",
			bytes: "AQI=",
		});
	});

	it("keeps names that mean something to JavaScript, and the sign of zero", () => {
		const data = create(FilmSchema, { rating: -0 });
		data.prizes = Object.fromEntries([["__proto__", 1]]);
		data.standIns = Object.fromEntries([["constructor", create(RoleSchema, { actor: "Doe" })]]);
		const metadata = Object.fromEntries([["__proto__", "team"]]);
		const wanted = readBack(resourceOf(Film, { id: idOf(Film, "alien"), data }));
		expect(wanted?.data).toEqual(data);
		const [source] = parseDocuments("m.yaml", toYaml({ type: "Film", name: "a", metadata }));
		const place = { partition: "default", namespace: "default" };
		expect(source && readDocument(source, { types, place })?.metadata).toEqual(metadata);
	});

	it("is read back to the same data, whatever it holds", () => {
		const text = fc.string({ unit: "binary" }).map((one) => one.toWellFormed());
		const role = fc.record({ actor: text, name: text });
		fc.assert(
			fc.property(
				fc.record({
					title: text,
					genre: fc.constantFrom(Genre.UNSPECIFIED, Genre.COMEDY),
					tags: fc.array(text, { maxLength: 3 }),
					cast: fc.array(role, { maxLength: 2 }),
					prizes: fc.dictionary(text, fc.nat()),
					standIns: fc.dictionary(text, role, { maxKeys: 2 }),
					poster: fc.uint8Array({ maxLength: 5 }),
					ticketsSold: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
					inColor: fc.boolean(),
					rating: fc.double(),
					releasedAt: fc.record({
						seconds: fc.bigInt({ min: -60_000_000_000n, max: 200_000_000_000n }),
						nanos: fc.nat({ max: 999_999_999 }),
					}),
				}),
				fc.option(fc.nat(), { nil: undefined }),
				(init, seats) => {
					const data = create(FilmSchema, { ...init, poster: new Uint8Array(init.poster) });
					if (seats !== undefined) {
						data.extra = anyPack(HallSchema, create(HallSchema, { seats }));
					}
					const wanted = readBack(resourceOf(Film, { id: idOf(Film, "alien"), data }));
					expect(wanted?.data).toEqual(data);
				},
			),
		);
	});
});
