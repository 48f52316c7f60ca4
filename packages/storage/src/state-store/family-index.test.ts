import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FamilyIndex } from "./family-index.ts";
import { NameMap } from "./name-map.ts";
import { OrderedMap, type OrderedSnapshot } from "./ordered-map.ts";
import { orderKey } from "./resource-key.ts";

const unit = fc.constantFrom("", "a", "ab", "b", "__proto__");
const name = fc.tuple(fc.constantFrom("n", "constructor"), fc.nat(40)).map(([a, b]) => a + b);
const id = fc.record({
	tenancy: fc.record({ partition: unit, namespace: unit }),
	name,
	region: fc.constantFrom(undefined, undefined, "", "a", "b"),
});
const step = fc.oneof(
	{ weight: 5, arbitrary: fc.record({ op: fc.constant("set" as const), id }) },
	{ weight: 4, arbitrary: fc.record({ op: fc.constant("delete" as const), id }) },
	{ weight: 1, arbitrary: fc.record({ op: fc.constant("delete-most" as const), id }) },
	{ weight: 1, arbitrary: fc.record({ op: fc.constant("snapshot" as const) }) },
);

interface Value {
	readonly id: Parameters<typeof orderKey>[0];
}

type Model = Map<string, Value>;

function inOrder(model: Model): Value[] {
	return [...model].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}

/** Both structures have what the model has. */
function expectSame(index: FamilyIndex<Value>, model: Model): void {
	expect([...index.snapshot().scan("")]).toEqual(inOrder(model));
	for (const value of model.values()) {
		expect(index.get(value.id)).toBe(value);
	}
}

/** Runs steps on an index and on a model, and compares them after each. */
function behavesLikeMap(numRuns: number): void {
	fc.assert(
		fc.property(fc.array(step, { minLength: 1, maxLength: 60, size: "max" }), (steps) => {
			const index = new FamilyIndex<Value>();
			const model: Model = new Map();
			const snapshots: [OrderedSnapshot<Value>, readonly Value[]][] = [];
			for (const each of steps) {
				if (each.op === "snapshot") {
					snapshots.push([index.snapshot(), inOrder(model)]);
					continue;
				}
				const { id } = each;
				const key = orderKey(id);
				if (each.op === "set") {
					// The index must not rely on strings being the same objects.
					const value = { id: structuredClone(id) };
					expect(index.set(id, value)).toBe(model.get(key));
					model.set(key, value);
				} else if (each.op === "delete") {
					expect(index.delete(id)).toBe(model.get(key));
					model.delete(key);
				} else {
					for (const [other, value] of [...model].filter(([other]) => other > key)) {
						expect(index.delete(value.id)).toBe(value);
						model.delete(other);
					}
				}
				expect(index.get(id)).toBe(model.get(key));
				expectSame(index, model);
			}
			for (const [snapshot, values] of snapshots) {
				expect([...snapshot.scan("")]).toEqual(values);
			}
		}),
		{ numRuns },
	);
}

/** Replaces a method of one of the two structures by one that does nothing at every fifth call. */
const faults: readonly (readonly [string, () => void])[] = [
	[
		"NameMap.set",
		() => {
			const real = NameMap.prototype.set;
			vi.spyOn(NameMap.prototype, "set").mockImplementation(function (
				this: NameMap<unknown>,
				id,
				value,
			) {
				if (!isFifth()) {
					real.call(this, id, value);
				}
			});
		},
	],
	[
		"NameMap.delete",
		() => {
			const real = NameMap.prototype.delete;
			vi.spyOn(NameMap.prototype, "delete").mockImplementation(function (
				this: NameMap<unknown>,
				id,
			) {
				return !isFifth() && real.call(this, id);
			});
		},
	],
	[
		"OrderedMap.set",
		() => {
			const real = OrderedMap.prototype.set;
			vi.spyOn(OrderedMap.prototype, "set").mockImplementation(function (
				this: OrderedMap<unknown>,
				key,
				value,
			) {
				return isFifth() ? undefined : real.call(this, key, value);
			});
		},
	],
	[
		"OrderedMap.delete",
		() => {
			const real = OrderedMap.prototype.delete;
			vi.spyOn(OrderedMap.prototype, "delete").mockImplementation(function (
				this: OrderedMap<unknown>,
				key,
			) {
				return isFifth() ? undefined : real.call(this, key);
			});
		},
	],
];

let calls = 0;
function isFifth(): boolean {
	calls += 1;
	return calls % 5 === 0;
}

afterEach(() => {
	vi.restoreAllMocks();
});

describe("FamilyIndex", () => {
	it("has the same values by name and in order after each change, and its snapshots do not change", () => {
		behavesLikeMap(40);
	});

	it.each(faults)("if %s misses one change in five, the check notices", (_name, plant) => {
		plant();
		expect(() => behavesLikeMap(100)).toThrow();
	});
});

describe("NameMap", () => {
	it("keeps no tenancy without values", () => {
		const map = new NameMap<number>();
		const ids = ["p", "q", "r"].flatMap((partition) =>
			["n", ""].map((namespace) => ({ tenancy: { partition, namespace }, name: "x" })),
		);
		for (const [value, each] of ids.entries()) {
			map.set(each, value);
		}
		expect(map.tenancies).toBe(6);
		for (const [value, each] of ids.entries()) {
			expect(map.delete(each)).toBe(true);
			expect(map.delete(each)).toBe(false);
			expect(map.tenancies).toBe(5 - value);
		}
	});
});
