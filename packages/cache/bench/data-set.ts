import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type ID, IDSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { type Decoded, decodeShared, idOf, referenceTo, resourceOf } from "@plinth/resource";
import { Album, Artist, Label } from "../src/demo-types.fixture.ts";
import { AlbumSchema } from "../testdata/src/gen/demo/v2/demo_pb.ts";

export type AlbumItem = Decoded<typeof AlbumSchema>;

/** What all contenders hold and are asked for. */
export interface DataSet {
	readonly size: number;
	readonly items: readonly AlbumItem[];
	/** Newer versions of some of the items, with the same keys: other objects, other strings. */
	readonly newer: readonly AlbumItem[];
	/** The IDs of the items in random order: other objects, other strings. */
	readonly ids: readonly ID[];
	readonly labels: ReturnType<typeof referenceTo>[];
	readonly genres: ReturnType<typeof referenceTo>[];
	readonly paths: readonly string[];
}

/** How many albums have the same label. */
export const perLabel = 10;

/** How many albums have the same genre. */
export const perGenre = 1000;

/** Albums that came from the wire, decoded, in random order: no two share a string. */
export function makeDataSet(size: number): DataSet {
	const order = shuffled(size);
	const probes = shuffled(size).slice(0, 50_000);
	const labels = size / perLabel;
	const genres = size / perGenre;
	return {
		size,
		items: order.map((i) => decodeShared(Album, makeAlbum(i, size))),
		newer: order.slice(0, 200_000).map((i) => decodeShared(Album, makeAlbum(i, size))),
		ids: shuffled(size).map((i) => fromBinary(IDSchema, toBinary(IDSchema, idOfAlbum(i)))),
		labels: probes.slice(0, labels).map((i) => labelReference(i % labels)),
		genres: probes.slice(0, Math.min(genres, 500)).map((i) => genreReference(i % genres)),
		paths: probes.map(pathOf),
	};
}

/** A resource that came from the wire. */
export function makeAlbum(i: number, size: number): Resource {
	const id = idOfAlbum(i);
	const album = resourceOf(Album, {
		id,
		owner: idOf(Artist, `artist-${Math.floor(i / 4)}`, id.tenancy),
		data: create(AlbumSchema, {
			title: `Title ${i}`,
			label: labelReference(i % (size / perLabel)),
			artists: [genreReference(i % (size / perGenre))],
			path: pathOf(i),
		}),
	});
	return fromBinary(ResourceSchema, toBinary(ResourceSchema, album));
}

function idOfAlbum(i: number): ID {
	const tenancy = { partition: `partition-${i % 4}`, namespace: `namespace-${i % 100}` };
	return idOf(Album, `album-${i}`, tenancy, `01JD${String(i).padStart(22, "0")}`);
}

function labelReference(i: number) {
	return referenceTo({ type: Label.type, tenancy: { partition: "default" }, name: `label-${i}` });
}

function genreReference(i: number) {
	const tenancy = { partition: "default", namespace: "genres" };
	return referenceTo({ type: Artist.type, tenancy, name: `genre-${i}` });
}

/** Boxes on a thousand shelves: in each an album that is filed under the box, and three in slots. */
function pathOf(i: number): string {
	const box = Math.floor(i / 4);
	const path = `shelf-${box % 1000}/box-${box}`;
	return i % 4 === 0 ? path : `${path}/slot-${i}`;
}

/** The numbers below `count` in an order that is random, and the next one each time it is asked. */
function shuffled(count: number): number[] {
	const numbers = Array.from({ length: count }, (_, i) => i);
	for (let i = count - 1; i > 0; i--) {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		const j = Math.floor((state / 2 ** 32) * (i + 1));
		// Both are below the length.
		[numbers[i], numbers[j]] = [numbers[j]!, numbers[i]!];
	}
	return numbers;
}

let state = 42;
