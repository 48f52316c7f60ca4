import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { album, labelReference, names } from "./albums.fixture.ts";
import { Album } from "./demo-types.fixture.ts";
import { createCache, referenceIndex } from "./index.ts";

const byLabel = referenceIndex("label", Album, ({ data }) => data.label);

function pad(i: number): string {
	return String(i).padStart(5, "0");
}

/** Enough for several chunks of a sorted list, all of one label. */
function filled(count: number) {
	const cache = createCache({ types: [Album], indexes: [byLabel] });
	for (let i = 0; i < count; i++) {
		cache.insert(album(`a-${pad(i)}`, { label: labelReference("blue") }));
	}
	return cache;
}

describe("an iterator", () => {
	it.each(["by ID", "by label"])(
		"sees large %s indexes as they were when it was opened",
		(which) => {
			const cache = filled(2000);
			const before = cache.list(Album);
			const iterators = Array.from({ length: 3 }, () =>
				which === "by ID" ? cache.iterate(Album) : cache.iterate(byLabel, labelReference("blue")),
			);
			const seen = iterators.map((iterator) => [...take(iterator, 700)]);
			for (let i = 0; i < 2000; i += 3) {
				cache.delete(idOf(Album, `a-${pad(i)}`));
				cache.insert(album(`a-${pad(i + 1)}`, { label: labelReference("blue") }));
				cache.insert(album(`b-${pad(i)}`, { label: labelReference("blue") }));
			}
			for (const [i, iterator] of iterators.entries()) {
				seen[i]?.push(...iterator);
				expect(seen[i]).toHaveLength(2000);
				expect(seen[i]?.every((item, at) => item === before[at])).toBe(true);
			}
			expect(cache.list(Album)).toHaveLength(2000);
		},
	);

	it("reads later changes that an earlier one does not", () => {
		const cache = filled(3);
		const first = cache.iterate(Album);
		first.next();
		cache.insert(album("a-00001-new"));
		const second = cache.iterate(Album);
		cache.delete(idOf(Album, "a-00002"));
		const third = cache.iterate(byLabel, labelReference("blue"));
		cache.delete(idOf(Album, "a-00000"));
		expect(names(first)).toEqual(["a-00001", "a-00002"]);
		expect(names(second)).toEqual(["a-00000", "a-00001", "a-00001-new", "a-00002"]);
		expect(names(third)).toEqual(["a-00000", "a-00001"]);
	});

	it("can be one of many, each over another part", () => {
		const cache = createCache({ types: [Album], indexes: [byLabel], validate: true });
		const labels = Array.from({ length: 12 }, (_, i) => labelReference(`label-${i}`));
		for (const [i, label] of labels.entries()) {
			cache.insert(album(`a-${i}`, { label }));
			cache.insert(album(`b-${i}`, { label }));
		}
		const iterators = labels.map((label) => cache.iterate(byLabel, label));
		for (const i of labels.keys()) {
			cache.delete(idOf(Album, `a-${i}`));
			cache.insert(album(`c-${i}`, { label: labels[0] ?? labelReference("x") }));
		}
		expect(iterators.map(names)).toEqual(labels.map((_, i) => [`a-${i}`, `b-${i}`]));
	});

	it("stays ended, and can be ended early", () => {
		const cache = filled(3);
		const iterator = cache.iterate(Album);
		for (const { resource } of iterator) {
			expect(resource.id?.name).toBe("a-00000");
			break;
		}
		cache.insert(album("b"));
		expect(iterator.next().done).toBe(true);
		expect(names(cache.iterate(Album).drop(3))).toEqual(["b"]);
	});

	it("can be abandoned, which releases its snapshot", async () => {
		const cache = filled(2000);
		const resource = (() => {
			const iterator = cache.iterate(Album);
			iterator.next();
			return new WeakRef(cache.get(Album, idOf(Album, "a-01000"))?.resource ?? {});
		})();
		cache.delete(idOf(Album, "a-01000"));
		expect(resource.deref()).toBeDefined();
		setFlagsFromString("--expose-gc");
		const collect: () => void = runInNewContext("gc");
		// A WeakRef that was read keeps its target until the iteration of the event loop ends.
		await new Promise((resolve) => setImmediate(resolve));
		collect();
		expect(resource.deref()).toBeUndefined();
		cache.insert(album("a-01000"));
		expect(names(cache.iterate(Album).drop(1999))).toEqual(["a-01999"]);
	});
});

function* take<T>(items: Iterator<T>, count: number): Generator<T> {
	for (let i = 0; i < count; i++) {
		const { done, value } = items.next();
		if (done) {
			return;
		}
		yield value;
	}
}
