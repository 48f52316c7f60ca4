import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type ID, IDSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { type Decoded, decodeShared, idOf, referenceTo, resourceOf } from "@plinth/resource";
import { AlbumSchema } from "../fixture/src/gen/demo/v2/demo_pb.ts";
import { Album, Artist, Label } from "../fixture/src/types.ts";

export type AlbumItem = Decoded<typeof AlbumSchema>;

/** What all contenders hold and are asked for. */
export interface DataSet {
	readonly items: readonly AlbumItem[];
	/** The same names in another version: same keys, other objects. */
	readonly newer: readonly AlbumItem[];
	/** The IDs of the items in random order, as objects and strings of their own. */
	readonly ids: readonly ID[];
	/** How many items there are in all. */
	readonly size: number;
}

/** Ten albums have the same label, a thousand the same genre (its reference is the first artist). */
export const perLabel = 10;
export const perGenre = 1000;

/** Resources that came from the wire: no string is shared between two of them. */
export function makeDataSet(size: number): DataSet {
	const items = makeItems(size, "1");
	const newer = makeItems(size, "2");
	const ids = items.map(({ resource }) => {
		// `makeItems` gives each an ID.
		return fromBinary(IDSchema, toBinary(IDSchema, resource.id!));
	});
	shuffle(ids);
	return { items, newer, ids, size };
}

function makeItems(size: number, version: string): AlbumItem[] {
	const order = Array.from({ length: size }, (_, i) => i);
	shuffle(order);
	return order.map((i) => {
		const resource = fromBinary(ResourceSchema, toBinary(ResourceSchema, makeAlbum(i, size)));
		resource.version = version;
		return decodeShared(Album, resource);
	});
}

function makeAlbum(i: number, size: number): Resource {
	const tenancy = tenancyOf(i);
	return resourceOf(Album, {
		id: idOf(Album, `album-${i}`, tenancy, `01JD${String(i).padStart(22, "0")}`),
		owner: idOf(Artist, `artist-${Math.floor(i / 4)}`, tenancy),
		data: create(AlbumSchema, {
			title: `Title ${i}`,
			label: labelReference(i % Math.ceil(size / perLabel)),
			artists: [genreReference(i % Math.ceil(size / perGenre))],
			path: pathOf(i),
		}),
	});
}

function tenancyOf(i: number) {
	return { partition: `partition-${i % 4}`, namespace: `namespace-${i % 100}` };
}

export function labelReference(i: number) {
	return referenceTo({
		type: Label.type,
		tenancy: { partition: "default" },
		name: `label-${i}`,
	});
}

export function genreReference(i: number) {
	return referenceTo({ type: Artist.type, tenancy: tenancyOf(0), name: `genre-${i}` });
}

/** A path of three segments: a quarter of all albums has a parent on it. */
export function pathOf(i: number): string {
	const shelf = `shelf-${i % 1000}`;
	const box = `${shelf}/box-${Math.floor(i / 4)}`;
	return i % 4 === 0 ? box : `${box}/slot-${i}`;
}

/** Fisher-Yates with a generator of its own: the same order in each run. */
function shuffle(items: unknown[]): void {
	let state = 42;
	for (let i = items.length - 1; i > 0; i--) {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		const j = state % (i + 1);
		[items[i], items[j]] = [items[j], items[i]];
	}
}
