import type { Resource } from "@plinth/proto";
import { type Decoded, idOf } from "@plinth/resource";
import fc from "fast-check";
import { expect, it } from "vitest";
import { album, labelReference } from "./albums.fixture.ts";
import { Album } from "./demo-types.fixture.ts";
import { type Cache, createCache, type Queries, referenceIndex, referenceKey } from "./index.ts";
import { ModelCache } from "./model.fixture.ts";

/** Keys with so many entries that they are kept in a set, then in chunks. */

const byLabel = referenceIndex("label", Album, ({ data }) => data.label);
const blue = labelReference("blue");
const blueKey = referenceKey(blue);

type Step = (run: Run) => void;

interface Run {
	readonly cache: Cache<Queries>;
	readonly model: ModelCache;
	readonly open: { readonly items: Iterator<Decoded>; readonly expected: Resource[] }[];
}

const range = fc.record({
	from: fc.nat(300),
	count: fc.integer({ min: 1, max: 200 }),
	tenancy: fc.constantFrom({ namespace: "n" }, { namespace: "m" }),
});

const insert = range.map(
	({ from, count, tenancy }): Step =>
		({ cache, model }) => {
			for (let i = from; i < from + count; i++) {
				const resource = album(`a-${i}`, { label: blue }, tenancy);
				cache.insert(resource);
				model.insert(resource);
			}
		},
);

const remove = range.map(
	({ from, count, tenancy }): Step =>
		({ cache, model }) => {
			for (let i = from; i < from + count; i++) {
				const id = idOf(Album, `a-${i}`, tenancy);
				const removed = cache.delete(id);
				if (removed !== undefined) {
					model.delete(removed);
				}
			}
		},
);

const list: Step = ({ cache, model }) => {
	expect(sameItems(cache.list(byLabel, blue), model.list(blueKey, byLabel))).toBe(true);
};

const listPrefix = fc.nat(30).map(
	(i): Step =>
		({ cache, model }) => {
			const tenancy = { partition: "default", namespace: "n" };
			const segmentPrefix = `a-${i}`;
			const expected = model.list({ segments: ["default", "n"], segmentPrefix });
			expect(sameItems(cache.list(Album, { tenancy, namePrefix: segmentPrefix }), expected)).toBe(
				true,
			);
		},
);

const openByLabel: Step = ({ cache, model, open }) => {
	open.push({ items: cache.iterate(byLabel, blue), expected: model.list(blueKey, byLabel) });
};

const openById: Step = ({ cache, model, open }) => {
	open.push({ items: cache.iterate(Album), expected: model.list([]) });
};

const advance = fc.nat(200).map(
	(steps): Step =>
		({ open }) => {
			for (const { items, expected } of open) {
				for (let i = 0; i < steps; i++) {
					expect(items.next().value?.resource).toBe(expected.shift());
				}
			}
		},
);

const steps = fc.array(
	fc.oneof(
		{ weight: 6, arbitrary: insert },
		{ weight: 3, arbitrary: remove },
		{ weight: 2, arbitrary: fc.constantFrom(list, openByLabel, openById) },
		{ weight: 1, arbitrary: listPrefix },
		{ weight: 2, arbitrary: advance },
	),
	{ maxLength: 14, size: "max" },
);

it("behaves like an array with filters if keys have hundreds of entries", () => {
	fc.assert(
		fc.property(steps, fc.boolean(), (steps, validate) => {
			const cache = createCache<Queries>({ types: [Album], indexes: [byLabel], validate });
			const run: Run = { cache, model: new ModelCache(Album), open: [] };
			for (const step of steps) {
				step(run);
			}
			list(run);
			for (const { items, expected } of run.open) {
				for (const resource of expected) {
					expect(items.next().value?.resource).toBe(resource);
				}
				expect(items.next().done).toBe(true);
			}
		}),
		{ numRuns: 15 },
	);
});

function sameItems(items: readonly Decoded[], expected: readonly Resource[]): boolean {
	return (
		items.length === expected.length && items.every(({ resource }, i) => resource === expected[i])
	);
}
