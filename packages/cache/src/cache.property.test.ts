import { create } from "@bufbuild/protobuf";
import type { Reference, Resource } from "@plinth/proto";
import { type Decoded, decode, idOf, referenceTo, resourceOf } from "@plinth/resource";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AlbumSchema } from "../testdata/src/gen/demo/v2/demo_pb.ts";
import { Album, Artist, Label } from "./demo-types.fixture.ts";
import {
	type Cache,
	cloningView,
	createCache,
	defineIndex,
	IndexError,
	type Key,
	type KeyQuery,
	ownerIndex,
	type Queries,
	type Reader,
	type ReferenceLike,
	referenceIndex,
	referenceKey,
	referencesIndex,
} from "./index.ts";
import { isKeyPrefix } from "./key.ts";
import { ModelCache } from "./model.fixture.ts";

const byLabel = referenceIndex("label", Album, (album) => album.data.label);
const byArtist = referencesIndex("artist", Album, (album) => album.data.artists);
const byOwner = ownerIndex(Album);
const byPath = defineIndex("path", Album, {
	keys: (album) => (album.data.path === "none" ? [] : [album.data.path.split("/")]),
	key: (path: KeyQuery) => path,
	required: true,
});
/** Several keys, of which one may be a prefix of another; and one title that it fails on. */
const byWord = defineIndex("word", Album, {
	keys: (album) => {
		if (album.data.title === "fails") {
			throw new Error("can't read this");
		}
		const words = album.data.title.split(" ");
		return [...words.map((word) => [word]), words];
	},
	key: (words: KeyQuery) => words,
});
const referenceIndexes = [byLabel, byArtist, byOwner];
const keyIndexes = [byPath, byWord];

const unit = fc.constantFrom("p", "q", "pq");
const name = fc.constantFrom("a", "ab", "abc", "b", "__proto__", "constructor");
const tenancy = fc.record({ partition: unit, namespace: unit });
const target: fc.Arbitrary<Reference> = fc
	.tuple(fc.constantFrom(Artist, Label), tenancy, name)
	.map(([{ type }, tenancy, name]) =>
		referenceTo({ type, name, tenancy: type.kind === "Label" ? { partition: "p" } : tenancy }),
	);
/** Most resources are at home. */
const region = fc.option(fc.constantFrom("us", "eu"), { nil: undefined, freq: 2 });
/** What a reader reads: mostly what is at home. */
const readRegion = fc.constantFrom("", "", "", "us", "eu", "asia", "*");
const album: fc.Arbitrary<Resource> = fc
	.record({
		name,
		region,
		tenancy,
		owner: fc.option(name, { nil: undefined }),
		label: fc.option(target, { nil: undefined, freq: 3 }),
		artists: fc.array(target, { maxLength: 4 }),
		path: fc.constantFrom("a", "a/b", "a/b/c", "ab", "b/a", "", "a//b", "none", "__proto__"),
		title: fc.constantFrom("one", "one two", "two one", "tw", "fails", "one one", ""),
	})
	.map(({ name, region, tenancy, owner, label, ...rest }) =>
		resourceOf(Album, {
			id: { ...idOf(Album, name, tenancy), ...(region && { region }) },
			...(owner && { owner: idOf(Artist, owner, tenancy) }),
			data: create(AlbumSchema, { ...rest, ...(label && { label }) }),
		}),
	);
const reference: fc.Arbitrary<ReferenceLike> = fc.oneof(
	target,
	fc
		.record({
			type: fc.constantFrom(Artist.type, Label.type, Album.type, undefined),
			tenancy: fc.option(fc.record({ partition: unit, namespace: fc.constantFrom("", "p", "*") }), {
				nil: undefined,
			}),
			namePrefix: fc.constantFrom("", "a", "ab", "c", "__"),
		})
		.map((partial) => partial),
);
const idPart: fc.Arbitrary<ReferenceLike> = fc.record({
	tenancy: fc.record({
		partition: fc.constantFrom("p", "q", "", "*"),
		namespace: fc.constantFrom("p", "pq", "", "*"),
	}),
	namePrefix: fc.constantFrom("", "a", "ab", "b", "_"),
});
const segment = fc.constantFrom("a", "ab", "b", "one", "two", "t", "", "o");
const keyQuery: fc.Arbitrary<KeyQuery> = fc.oneof(
	fc.array(segment, { maxLength: 3 }),
	fc.record({ segments: fc.array(segment, { maxLength: 2 }), segmentPrefix: segment }),
);

type Step = (run: Run) => void;

interface Run {
	readonly cache: Cache<Queries>;
	readonly model: ModelCache;
	readonly open: OpenIterator[];
}

interface OpenIterator {
	readonly items: Iterator<Decoded>;
	readonly expected: Resource[];
}

const insert = album.map(
	(resource): Step =>
		({ cache, model }) => {
			const { title, path } = decodeAlbum(resource);
			if (title === "fails" || path === "none") {
				expect(() => cache.insert(resource)).toThrow(IndexError);
			} else {
				cache.insert(resource);
				model.insert(resource);
			}
		},
);

const remove = album.map(
	(resource): Step =>
		({ cache, model }) => {
			const present = model.get(idKey(resource), undefined, resource.id?.region);
			expect(cache.delete(resource)).toBe(present);
			model.delete(resource);
		},
);

const getById = fc.tuple(album, readRegion).map(
	([resource, region]): Step =>
		({ cache, model }) => {
			const id = resource.id ?? {};
			const expected = model.get(idKey(resource), undefined, resource.id?.region);
			expect(cache.get(Album, id)?.resource).toBe(expected);
			expect(cache.parents(Album, id).map(resourceOfItem)).toEqual(
				[expected].filter((present) => present !== undefined),
			);
			const unnamed = idOf(Album, resource.id?.name ?? "", resource.id?.tenancy);
			const there = model.get(idKey(resource), undefined, region);
			expect(cache.get(Album, { ...unnamed, region })?.resource).toBe(there);
			expect(cache.inRegion(region).get(Album, unnamed)?.resource).toBe(there);
		},
);

/** What a reader of an index asks, and the key that the model asks for. */
const question = fc.oneof(
	fc
		.tuple(fc.constantFrom(...referenceIndexes), reference, readRegion)
		.map(([index, target, region]) => ({
			...{ index, region },
			key: referenceKey(target),
			list: (cache: Cache<Queries>) => reader(cache, region).list(index, target),
			iterate: (cache: Cache<Queries>) => reader(cache, region).iterate(index, target),
			get: (cache: Cache<Queries>) => reader(cache, region).get(index, target),
			parents: (cache: Cache<Queries>) => reader(cache, region).parents(index, target),
		})),
	fc.tuple(fc.constantFrom(...keyIndexes), keyQuery, readRegion).map(([index, key, region]) => ({
		...{ index, key, region },
		list: (cache: Cache<Queries>) => reader(cache, region).list(index, key),
		iterate: (cache: Cache<Queries>) => reader(cache, region).iterate(index, key),
		get: (cache: Cache<Queries>) => reader(cache, region).get(index, key),
		parents: (cache: Cache<Queries>) => reader(cache, region).parents(index, key),
	})),
	fc.tuple(idPart, readRegion).map(([part, region]) => ({
		...{ index: undefined, region },
		key: idQuery(part),
		list: (cache: Cache<Queries>) => cache.list(Album, { ...part, region }),
		iterate: (cache: Cache<Queries>) => cache.iterate(Album, { ...part, region }),
	})),
	fc.tuple(idPart, readRegion).map(([part, region]) => ({
		...{ index: undefined, region },
		key: idQuery(part),
		list: (cache: Cache<Queries>) => reader(cache, region).list(Album, part),
		iterate: (cache: Cache<Queries>) => reader(cache, region).iterate(Album, part),
	})),
);

/** The cache itself for what is at home. */
function reader(cache: Cache<Queries>, region: string): Reader<Queries> {
	return region === "" ? cache : cache.inRegion(region);
}

const list = question.map(
	({ index, key, region, list }): Step =>
		({ cache, model }) => {
			sameItems(list(cache), model.list(key, index, region));
		},
);

const getOrParents = question.map(
	(asked): Step =>
		({ cache, model }) => {
			const { key, index, region } = asked;
			if (index === undefined) {
				return;
			}
			if (isKeyPrefix(key)) {
				// A region without copies has nothing that could fail.
				if (region === "" || region === "*") {
					expect(() => asked.get(cache)).toThrow(IndexError);
					expect(() => asked.parents(cache)).toThrow(IndexError);
				}
			} else if (region === "*") {
				// The parents are ordered in each region.
				const parents = ["", "eu", "us"].flatMap((each) => model.parents(key, index, each));
				expect(asked.get(cache)?.resource).toBe(model.get(key, index, region));
				sameItems(asked.parents(cache), parents);
			} else {
				expect(asked.get(cache)?.resource).toBe(model.get(key, index, region));
				sameItems(asked.parents(cache), model.parents(key, index, region));
			}
		},
);

const open = question.map(
	({ index, key, region, iterate }): Step =>
		({ cache, model, open }) => {
			open.push({ items: iterate(cache), expected: model.list(key, index, region) });
		},
);

const advance = fc.tuple(fc.nat(20), fc.nat(5)).map(
	([at, steps]): Step =>
		({ open }) => {
			const iterator = open[at % (open.length || 1)];
			for (let i = 0; i < steps && iterator !== undefined; i++) {
				expect(iterator.items.next().value?.resource).toBe(iterator.expected.shift());
			}
		},
);

const close = fc.nat(20).map(
	(at): Step =>
		({ open }) => {
			const [iterator] = open.splice(at % (open.length || 1), 1);
			iterator?.items.return?.();
			expect(iterator?.items.next().done ?? true).toBe(true);
		},
);

const query = fc.tuple(target, readRegion).map(
	([label, region]): Step =>
		({ cache, model }) => {
			expect(reader(cache, region).query("names", label)).toEqual(
				model.list(referenceKey(label), byLabel, region).map(({ id }) => id?.name),
			);
		},
);

const clones = question.map(
	({ index, key, region }): Step =>
		({ cache, model }) => {
			if (index === undefined && !isKeyPrefix(key)) {
				const copies = cloningView(cache).inRegion(region).list(Album);
				const originals = model.list([], undefined, region);
				expect(copies.map(resourceOfItem)).toEqual(originals);
				expect(copies.some(({ resource }) => originals.includes(resource))).toBe(false);
			}
		},
);

const steps = fc.array(
	fc.oneof(
		{ weight: 8, arbitrary: insert },
		{ weight: 3, arbitrary: remove },
		{ weight: 1, arbitrary: getById },
		{ weight: 3, arbitrary: list },
		{ weight: 2, arbitrary: getOrParents },
		{ weight: 2, arbitrary: open },
		{ weight: 4, arbitrary: advance },
		{ weight: 1, arbitrary: close },
		{ weight: 1, arbitrary: query },
		{ weight: 1, arbitrary: clones },
	),
	{ maxLength: 60, size: "max" },
);

it("behaves like an array with filters under any sequence of operations", () => {
	fc.assert(
		fc.property(steps, (steps) => {
			const run: Run = {
				cache: createCache<Queries>({
					types: [Artist, Label, Album],
					indexes: [...referenceIndexes, ...keyIndexes],
					queries: {
						names: (cache, label: ReferenceLike) =>
							cache.list(byLabel, label).map(({ resource }) => resource.id?.name),
					},
					validate: true,
				}),
				model: new ModelCache(Album),
				open: [],
			};
			for (const step of steps) {
				step(run);
			}
			for (const { items, expected } of run.open) {
				for (const resource of expected) {
					expect(items.next().value?.resource).toBe(resource);
				}
				expect(items.next().done).toBe(true);
			}
			sameItems(run.cache.list(Album), run.model.list([]));
			sameItems(run.cache.list(Album, { region: "*" }), run.model.list([], undefined, "*"));
			expect(run.cache.size(Album)).toBe(run.model.all.length);
			for (const region of ["", "us", "*"]) {
				const ids = run.model.list([], undefined, region).map(({ id }) => id);
				expect(new Set(run.cache.ids(Album, region))).toEqual(new Set(ids));
			}
		}),
		{ numRuns: 300 },
	);
});

function sameItems(items: readonly Decoded[], expected: readonly Resource[]): void {
	expect(items.length).toBe(expected.length);
	for (const [i, { resource }] of items.entries()) {
		expect(resource).toBe(expected[i]);
	}
}

function resourceOfItem({ resource }: Decoded): Resource {
	return resource;
}

/** The key of a part of an ID of a namespaced type, said again in the simplest way. */
function idQuery({ tenancy, namePrefix = "" }: ReferenceLike): KeyQuery {
	const { partition = "", namespace = "" } = tenancy ?? {};
	if (partition === "" || partition === "*") {
		return [];
	}
	return namespace === "" || namespace === "*"
		? [partition]
		: { segments: [partition, namespace], segmentPrefix: namePrefix };
}

function idKey({ id }: Resource): Key {
	return [id?.tenancy?.partition ?? "", id?.tenancy?.namespace ?? "", id?.name ?? ""];
}

function decodeAlbum(resource: Resource): { title: string; path: string } {
	return decode(Album, resource).data;
}
