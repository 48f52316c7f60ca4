import { create } from "@bufbuild/protobuf";
import { ReferenceSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { DecodeError, decodeShared, idOf, referenceTo, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { album, artist, labelReference, names, region, undecodable } from "./albums.fixture.ts";
import { Album, AlbumV1, Artist, Label, Region } from "./demo-types.fixture.ts";
import {
	CacheError,
	createCache,
	defineIndex,
	IndexError,
	ownerIndex,
	type Queries,
	type ReferenceLike,
	referenceIndex,
	referencesIndex,
} from "./index.ts";

const byLabel = referenceIndex("label", Album, ({ data }) => data.label);
const byPath = defineIndex("path", Album, {
	keys: ({ data }) => [data.path.split("/")],
	key: (path: string) => path.split("/"),
});
const byTitle = defineIndex("title", Album, {
	keys: ({ data }) => (data.title === "" ? [] : [[data.title]]),
	key: (title: string) => [title],
	required: true,
});

function albums(...indexes: Parameters<typeof createCache>[0]["indexes"] & object) {
	return createCache({ types: [Artist, Album], indexes, validate: true });
}

describe("insert", () => {
	it("replaces the resource of that name, whatever its uid, in all indexes", () => {
		const cache = albums(byLabel, byPath);
		const first = album("kind", { path: "a/b", label: labelReference("columbia") });
		const second = album("kind", { path: "a/c", label: labelReference("columbia") });
		if (second.id) {
			second.id.uid = "01JD0000000000000000000000";
		}
		cache.insert(first);
		cache.insert(second);
		expect(cache.size(Album)).toBe(1);
		expect(cache.get(Album, first.id ?? {})?.resource).toBe(second);
		expect(cache.list(byPath, "a/b")).toEqual([]);
		expect(names(cache.list(byPath, "a/c"))).toEqual(["kind"]);
		expect(cache.get(byLabel, labelReference("columbia"))?.resource).toBe(second);
	});

	it("does not change items that a reader has", () => {
		const cache = albums(byLabel);
		cache.insert(album("kind", { title: "before" }));
		const item = cache.get(Album, idOf(Album, "kind"));
		cache.insert(album("kind", { title: "after" }));
		expect(item?.data.title).toBe("before");
	});

	it("treats a resource of another group version as the same type", () => {
		const cache = albums();
		const old = resourceOf(AlbumV1, { id: idOf(AlbumV1, "kind") });
		cache.insert(album("kind"));
		cache.insert(old);
		expect(cache.size(Album)).toBe(1);
		expect(cache.get(AlbumV1, idOf(Album, "kind"))?.data.$typeName).toBe("demo.v1.Album");
		expect(() => cache.get(Album, idOf(Album, "kind"))?.data).toThrow(DecodeError);
		expect(names(cache.iterate(AlbumV1))).toEqual(["kind"]);
		expect(cache.delete(idOf(AlbumV1, "kind"))).toBe(old);
	});

	it("refuses resources without ID, name or type, and of undeclared types", () => {
		const cache = albums();
		expect(() => cache.insert(create(ResourceSchema))).toThrow(/resource without an ID/);
		expect(() => cache.insert(create(ResourceSchema, { id: { name: "a" } }))).toThrow(CacheError);
		expect(() => cache.insert({ ...album("a"), id: idOf(Album, "") })).toThrow(/has no name/);
		expect(() => cache.insert(region("eu"))).toThrow(
			"the cache does not contain the type of demo.v2.Region eu",
		);
	});

	it("freezes inserted resources", () => {
		const cache = albums(byLabel);
		const kind = album("kind");
		cache.insert(kind);
		expect(() => {
			kind.metadata.color = "blue";
		}).toThrow(TypeError);
		expect(cache.get(Album, idOf(Album, "kind"))).toSatisfy(Object.isFrozen);
	});

	it("accepts names of properties of Object.prototype", () => {
		const cache = albums(byPath);
		for (const name of ["__proto__", "constructor", "toString"]) {
			cache.insert(album(name, { path: `${name}/__proto__` }, { partition: name }));
			expect(cache.get(Album, idOf(Album, name, { partition: name }))?.data.path).toContain(name);
			expect(names(cache.list(byPath, name))).toEqual([name]);
		}
		expect(cache.get(Album, idOf(Album, "hasOwnProperty"))).toBeUndefined();
	});
});

describe("an index that fails", () => {
	it("is named in the error, with its type, and leaves the cache unchanged", () => {
		const failing = defineIndex("failing", Album, {
			keys: ({ data }) => {
				if (data.title === "bad") {
					throw new Error("no such luck");
				}
				return [[data.title]];
			},
			key: (title: string) => [title],
		});
		const cache = albums(byPath, failing);
		const good = album("kind", { title: "good", path: "a" });
		cache.insert(good);
		const error = catchError(() => cache.insert(album("kind", { title: "bad", path: "b" })));
		expect(error).toBeInstanceOf(IndexError);
		expect(error).toMatchObject({
			index: "failing",
			type: "demo.v2.Album",
			message:
				'index "failing" of demo.v2.Album: failed on demo.v2.Album default/default/kind: no such luck',
		});
		expect(cache.get(Album, good.id ?? {})?.resource).toBe(good);
		expect(cache.list(byPath, "b")).toEqual([]);
		expect(names(cache.list(byPath, "a"))).toEqual(["kind"]);
		expect(cache.get(failing, "good")?.resource).toBe(good);
	});

	it("is named in the error if a required key is missing", () => {
		const cache = albums(byTitle);
		expect(() => cache.insert(album("kind"))).toThrow(
			'index "title" of demo.v2.Album: is required, but demo.v2.Album default/default/kind has no key',
		);
		expect(cache.size(Album)).toBe(0);
		cache.insert(album("kind", { title: "Kind of Blue" }));
		expect(() => cache.insert(album("kind"))).toThrow(IndexError);
		expect(cache.get(byTitle, "Kind of Blue")?.data.title).toBe("Kind of Blue");
	});

	it.each([
		["no array", () => "ab"],
		["a key for keys", () => ["a", "b"]],
		["segments that are no strings", () => [["a", 1]]],
		["undefined", () => undefined],
	])("is named in the error when it returns %s", (_, keys) => {
		const cache = albums(defineIndex("odd", Album, { keys: keys as () => [], key: () => [] }));
		expect(() => cache.insert(album("kind"))).toThrow(
			'index "odd" of demo.v2.Album: keys of demo.v2.Album default/default/kind are not an array',
		);
		expect(cache.size(Album)).toBe(0);
	});

	it("is named in the error if it needs data that can't be decoded", () => {
		const cache = albums(byLabel);
		const error = catchError(() => cache.insert(undecodable("kind")));
		expect(error).toBeInstanceOf(IndexError);
		expect(error).toMatchObject({ index: "label", cause: expect.any(DecodeError) });
		expect(cache.size(Album)).toBe(0);
	});

	it("omits and reports undecodable resources if the cache has a callback for them", () => {
		const left: string[] = [];
		const cache = createCache({
			types: [Album],
			indexes: [byLabel],
			validate: true,
			onUndecodable: (type, { id }, error) => left.push(`${type.key} ${id?.name} ${error.name}`),
		});
		cache.insert(undecodable("kind"));
		expect(new Set(left)).toEqual(new Set([`${Album.key} kind DecodeError`]));
		expect(cache.size(Album)).toBe(1);
		expect(() => cache.get(Album, idOf(Album, "kind"))?.data).toThrow(DecodeError);
		cache.insert(album("kind"));
		expect(cache.get(Album, idOf(Album, "kind"))?.data).toBeDefined();
	});
});

describe("delete", () => {
	it("needs only the ID and returns the removed resource", () => {
		const cache = albums(byPath, byLabel);
		const kind = album("kind", { path: "a/b", label: labelReference("columbia") });
		cache.insert(kind);
		expect(cache.delete({ type: Album.type, tenancy: kind.id?.tenancy, name: "kind" })).toBe(kind);
		expect(cache.stats()[1]).toEqual({
			type: "demo.v2.Album",
			size: 0,
			indexes: [
				{ name: "path", keys: 0 },
				{ name: "label", keys: 0 },
			],
		});
	});

	it("uses the keys of the cached object, not of the argument", () => {
		const cache = albums(byPath);
		cache.insert(album("kind", { path: "a" }));
		cache.delete(album("kind", { path: "b" }));
		expect(cache.list(byPath, "a")).toEqual([]);
	});

	it("ignores missing resources", () => {
		const cache = albums(byPath);
		expect(cache.delete(album("kind"))).toBeUndefined();
	});

	it("refuses an undeclared type", () => {
		expect(() => albums().delete(idOf(Region, "eu"))).toThrow(CacheError);
	});
});

describe("reads", () => {
	it("distinguish tenancies, and know which units a scope has", () => {
		const cache = createCache({ types: [Album, Label, Region], validate: true });
		const label = (name: string, partition: string) =>
			resourceOf(Label, { id: idOf(Label, name, { partition }) });
		cache.insert(album("a", {}, { partition: "p", namespace: "n" }));
		cache.insert(album("a", {}, { partition: "p", namespace: "m" }));
		cache.insert(album("b", {}, { partition: "q", namespace: "n" }));
		cache.insert(label("a", "p"));
		cache.insert(label("ab", "p"));
		cache.insert(label("a", "q"));
		cache.insert(region("eu"));
		cache.insert(region("eu-2"));
		const list = (partition: string, namespace: string, rest: ReferenceLike = {}) =>
			cache
				.list(Album, { tenancy: { partition, namespace }, ...rest })
				.map(({ resource }) => `${resource.id?.tenancy?.namespace}/${resource.id?.name}`);
		expect(list("p", "")).toEqual(["m/a", "n/a"]);
		expect(list("p", "*")).toEqual(["m/a", "n/a"]);
		expect(list("p", "n", { name: "a" })).toEqual(["n/a"]);
		expect(list("*", "n")).toEqual(["m/a", "n/a", "n/b"]);
		expect(names(cache.list(Label, { tenancy: { partition: "p" }, name: "a" }))).toEqual(["a"]);
		expect(names(cache.list(Label, { tenancy: { partition: "p" }, namePrefix: "a" }))).toEqual([
			"a",
			"ab",
		]);
		expect(names(cache.list(Region, { name: "eu" }))).toEqual(["eu"]);
		expect(names(cache.list(Region, { namePrefix: "eu" }))).toEqual(["eu", "eu-2"]);
		expect(cache.get(Region, { name: "eu" })?.resource.id?.name).toBe("eu");
		expect(cache.get(Region, { name: "e" })).toBeUndefined();
	});

	it("distinguish complete references from prefixes of others", () => {
		const cache = albums(byLabel);
		cache.insert(album("a", { label: labelReference("blue") }));
		cache.insert(album("b", { label: labelReference("bluenote") }));
		cache.insert(album("c"));
		expect(names(cache.list(byLabel, labelReference("blue")))).toEqual(["a"]);
		const part = { type: Label.type, tenancy: { partition: "default" } };
		expect(names(cache.list(byLabel, { type: Label.type }))).toEqual(["a", "b"]);
		expect(names(cache.list(byLabel, part))).toEqual(["a", "b"]);
		expect(names(cache.list(byLabel, {}))).toEqual(["a", "b"]);
		expect(cache.get(byLabel, part)).toBeUndefined();
	});

	it("find references to resources without tenancy", () => {
		const byRegion = referencesIndex("region", Album, ({ data }) => data.artists);
		const cache = albums(byRegion);
		const eu = referenceTo({ type: Region.type, name: "eu" });
		cache.insert(album("a", { artists: [eu] }));
		cache.insert(album("b", { artists: [referenceTo({ type: Region.type, name: "us" })] }));
		expect(names(cache.list(byRegion, eu))).toEqual(["a"]);
		expect(names(cache.list(byRegion, { type: Region.type, namePrefix: "u" }))).toEqual(["b"]);
	});

	it("list parents by the length of their keys", () => {
		const cache = albums(byPath);
		for (const path of ["a/b/c", "a/b", "a", "ab", "a/b/d", "b"]) {
			cache.insert(album(path.replaceAll("/", "-"), { path }));
		}
		expect(names(cache.parents(byPath, "a/b/c"))).toEqual(["a", "a-b", "a-b-c"]);
		expect(names(cache.parents(byPath, "a/b/x/y"))).toEqual(["a", "a-b"]);
		expect(cache.parents(byPath, "x")).toEqual([]);
	});

	it("decode on first access, once for any number of caches and readers", () => {
		const kind = album("kind", { title: "Kind of Blue" });
		const caches = [albums(), albums(byPath), albums()];
		for (const cache of caches) {
			cache.insert(kind);
		}
		const datas = caches.map((cache) => cache.get(Album, kind.id ?? {})?.data);
		expect(new Set([...datas, decodeShared(Album, kind).data]).size).toBe(1);
	});

	it("do not keep decoded data that is many times larger than its encoded bytes", () => {
		const cache = albums(byPath);
		// About 8 MB, in 200 kB.
		const artists = Array.from({ length: 100_000 }, () => create(ReferenceSchema));
		const large = album("large", { artists });
		const names = Array.from({ length: 10 }, (_, i) => `large-${i}`);
		for (const name of names) {
			cache.insert({ ...large, id: idOf(Album, name) });
		}
		const read = () => names.map((name) => cache.get(Album, idOf(Album, name))?.data);
		const first = read();
		const second = read();
		expect(first.filter((data, i) => data === second[i]).length).toBe(0);
		expect(second.every((data) => data?.artists.length === artists.length)).toBe(true);
	});

	it("continue after a resource that can't be decoded", () => {
		const cache = albums(ownerIndex(Album));
		cache.insert(album("a", { title: "A" }));
		cache.insert(undecodable("b"));
		cache.insert(album("c", { title: "C" }));
		const seen: (string | undefined)[] = [];
		for (const item of cache.iterate(Album)) {
			try {
				seen.push(item.data.title);
			} catch (error) {
				expect(error).toBeInstanceOf(DecodeError);
				seen.push(item.resource.id?.name);
			}
		}
		expect(seen).toEqual(["A", "b", "C"]);
		expect(names(cache.list(Album))).toEqual(["a", "b", "c"]);
	});

	it("list a resource once, even if several of its keys match", () => {
		const byArtist = referencesIndex("artist", Album, ({ data }) => data.artists);
		const cache = albums(byArtist);
		const miles = referenceTo(idOf(Artist, "miles"));
		const john = referenceTo(idOf(Artist, "john"));
		cache.insert(album("b", { artists: [miles, john, miles] }));
		cache.insert(album("a", { artists: [miles] }));
		expect(names(cache.list(byArtist, { type: Artist.type }))).toEqual(["b", "a"]);
		expect(names(cache.list(byArtist, miles))).toEqual(["a", "b"]);
		expect(cache.stats()[1]?.indexes).toEqual([{ name: "artist", keys: 3 }]);
	});

	it("list the cached IDs, to find removed resources", () => {
		const cache = albums();
		cache.insert(album("a"));
		cache.insert(album("b"));
		cache.insert(artist("a"));
		for (const id of cache.ids(Album)) {
			if (id.name !== "b") {
				cache.delete(id);
			}
		}
		expect(names(cache.list(Album))).toEqual(["b"]);
		expect(cache.size(Artist)).toBe(1);
	});
});

describe("a read of something undeclared", () => {
	const cache = createCache<Queries>({
		types: [Album],
		indexes: [byPath],
		queries: { fails: (_, path: string) => path.split("/") },
	});

	it("names the type", () => {
		expect(() => cache.get(Artist, { name: "a" })).toThrow(
			"the cache does not contain the type demo.v2.Artist",
		);
		expect(() => cache.list(Artist)).toThrow(CacheError);
		expect(() => cache.ids(Artist)).toThrow(CacheError);
	});

	it("names the index", () => {
		expect(() => cache.list(byTitle, "a")).toThrow(
			'the cache has no index "title" of demo.v2.Album',
		);
	});

	it("names the query", () => {
		expect(() => cache.query("nope")).toThrow('the cache has no query "nope"; known: fails');
		expect(() => cache.query("toString")).toThrow(CacheError);
	});

	it("names the argument", () => {
		const { get, list } = untyped(cache);
		expect(() => get(byPath)).toThrow('index "path" of demo.v2.Album: bad argument');
		expect(() => list(byPath, 1)).toThrow(IndexError);
		expect(() => get(Album)).toThrow("demo.v2.Album by ID: bad argument");
		expect(() => get(Album, {})).toThrow(CacheError);
		expect(() => list(Album, "kind")).toThrow(CacheError);
		expect(() => cache.query("fails", undefined)).toThrow('query "fails" failed');
	});

	it("is refused: a prefix instead of a key", () => {
		const open = defineIndex("open", Album, {
			keys: ({ data }) => [[data.title]],
			key: (title: string) => ({ segments: [], segmentPrefix: title }),
		});
		const cache = albums(open);
		expect(() => cache.get(open, "a")).toThrow(IndexError);
		expect(() => cache.parents(open, "a")).toThrow(IndexError);
	});
});

describe("a declaration", () => {
	it("refuses missing or duplicate names and functions", () => {
		const functions = { keys: () => [], key: () => [] };
		expect(() => defineIndex("", Album, functions)).toThrow(
			"an index of demo.v2.Album has no name",
		);
		expect(() => defineIndex("id", Album, functions)).toThrow('index "id" of demo.v2.Album');
		expect(() => defineIndex("x", Album, { ...functions, key: undefined as never })).toThrow(
			"the function `key` is missing",
		);
		expect(() => defineIndex("x", Album, { ...functions, keys: undefined as never })).toThrow(
			"the function `keys` is missing",
		);
		expect(() => albums(byPath, defineIndex("path", Album, functions))).toThrow(
			'index "path" of demo.v2.Album: its name is declared twice',
		);
		expect(() => createCache({ types: [Album], queries: { "": () => 1 } })).toThrow(CacheError);
		expect(() => createCache({ types: [Album], queries: { x: 1 as never } })).toThrow(
			'query "x" is not a function',
		);
	});

	it("accepts one name on two types", () => {
		expect(() => albums(ownerIndex(Album), ownerIndex(Artist))).not.toThrow();
	});

	it("refuses duplicate types, and indexes of undeclared types", () => {
		expect(() => createCache({ types: [Album, Album] })).toThrow(
			"type demo.v2.Album is declared twice",
		);
		expect(() => createCache({ types: [Album, AlbumV1] })).toThrow(/differ only in group version/);
		expect(() => createCache({ types: [Artist], indexes: [byPath] })).toThrow(
			'index "path" of demo.v2.Album: its type is not declared',
		);
		expect(() => createCache({ types: [AlbumV1], indexes: [byPath] })).toThrow(
			"the cache declares demo.v1.Album instead",
		);
	});

	it("can be used for any number of caches", () => {
		const caches = [albums(byPath), albums(byPath)];
		caches[0]?.insert(album("a", { path: "x" }));
		expect(caches.map((cache) => cache.list(byPath, "x").length)).toEqual([1, 0]);
	});
});

function catchError(run: () => unknown): unknown {
	try {
		run();
	} catch (error) {
		return error;
	}
	return undefined;
}

/** Callers that the compiler does not check. */
function untyped(cache: { get: unknown; list: unknown }) {
	const call = (method: unknown) => (what: unknown, argument?: unknown) =>
		Reflect.apply(method as (resource: Resource) => unknown, cache, [what, argument]);
	return { get: call(cache.get), list: call(cache.list) };
}

describe("copies of other regions", () => {
	const inUs = (resource: Resource) => {
		const { id } = resource;
		return { ...resource, ...(id && { id: { ...id, region: "us" } }) };
	};
	const kind = idOf(Album, "kind");

	function withCopies() {
		const cache = albums(byLabel, byTitle);
		const label = labelReference("columbia");
		cache.insert(album("kind", { title: "local", label }));
		cache.insert(inUs(album("kind", { title: "copied", label })));
		cache.insert(inUs(album("sketches", { title: "sketches", label })));
		return cache;
	}

	it("have the names of others, and are read only where they are asked for", () => {
		const cache = withCopies();
		expect(cache.get(Album, kind)?.data.title).toBe("local");
		expect(cache.get(Album, { ...kind, region: "" })?.data.title).toBe("local");
		expect(cache.get(Album, { ...kind, region: "us" })?.data.title).toBe("copied");
		expect(cache.get(Album, { ...kind, region: "eu" })).toBeUndefined();
		expect(cache.get(Album, idOf(Album, "sketches"))).toBeUndefined();
		expect(names(cache.list(Album))).toEqual(["kind"]);
		expect(names(cache.list(Album, { region: "us" }))).toEqual(["kind", "sketches"]);
		expect(names(cache.iterate(Album, { region: "*" }))).toEqual(["kind", "kind", "sketches"]);
		expect(names(cache.list(byLabel, labelReference("columbia")))).toEqual(["kind"]);
		const us = cache.inRegion("us");
		expect(names(us.list(byLabel, labelReference("columbia")))).toEqual(["kind", "sketches"]);
		expect(us.get(byTitle, "local")).toBeUndefined();
		expect(cache.size(Album)).toBe(3);
		expect(cache.ids(Album).map(({ name }) => name)).toEqual(["kind"]);
		expect(cache.stats().map(({ size }) => size)).toEqual([0, 3]);
	});

	it("are not those of the region of the service, which stands for what is no copy", () => {
		const cache = createCache({ types: [Album], region: "eu" });
		cache.insert(album("kind", { title: "local" }));
		cache.insert(inUs(album("kind", { title: "copied" })));
		expect(cache.get(Album, { ...kind, region: "eu" })?.data.title).toBe("local");
		expect(cache.inRegion("eu").get(Album, kind)?.data.title).toBe("local");
		expect(names(cache.list(Album, { region: "eu" }))).toEqual(["kind"]);
		expect(cache.get(Album, { ...kind, region: "us" })?.data.title).toBe("copied");
	});

	it("are read by readers that were there before the first copy", () => {
		const cache = albums(byLabel);
		const us = cache.inRegion("us");
		expect(us.list(Album)).toEqual([]);
		expect(us.list(byLabel, labelReference("columbia"))).toEqual([]);
		cache.insert(inUs(album("kind", { label: labelReference("columbia") })));
		expect(names(us.list(Album))).toEqual(["kind"]);
		expect(names(us.list(byLabel, labelReference("columbia")))).toEqual(["kind"]);
	});

	it("are deleted by their region alone", () => {
		const cache = withCopies();
		expect(cache.delete({ ...kind, region: "eu" })).toBeUndefined();
		cache.delete(kind);
		expect(cache.get(Album, { ...kind, region: "us" })?.data.title).toBe("copied");
		cache.delete({ ...kind, region: "us" });
		expect(names(cache.list(Album, { region: "*" }))).toEqual(["sketches"]);
	});

	it("leave the cache unchanged if an index refuses them", () => {
		const cache = withCopies();
		expect(() => cache.insert(inUs(album("untitled")))).toThrow(IndexError);
		expect(names(cache.list(Album, { region: "us" }))).toEqual(["kind", "sketches"]);
	});

	it("end all iterators of a read of everything when it returns", () => {
		const cache = withCopies();
		const all = cache.iterate(Album, { region: "*" });
		expect(all.next().value?.data.title).toBe("local");
		all.return?.();
		expect(all.next().done).toBe(true);
	});

	it("need a declared index, like others", () => {
		expect(() => withCopies().inRegion("us").list(byPath, "a")).toThrow(CacheError);
	});
});
