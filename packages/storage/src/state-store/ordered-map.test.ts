import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OrderedMap, type OrderedSnapshot } from "./ordered-map.ts";

const key = fc
	.tuple(fc.constantFrom("", "a", "a\0", "a-b\0", "b\0"), fc.nat(400))
	.map(([prefix, number]) => prefix + number);

const step = fc.oneof(
	{ weight: 6, arbitrary: fc.record({ op: fc.constant("set" as const), key }) },
	{ weight: 4, arbitrary: fc.record({ op: fc.constant("delete" as const), key }) },
	{ weight: 1, arbitrary: fc.record({ op: fc.constant("delete-many" as const), key }) },
	{ weight: 1, arbitrary: fc.record({ op: fc.constant("snapshot" as const) }) },
);

function expected(model: ReadonlyMap<string, number>, prefix: string, after?: string): number[] {
	return [...model]
		.filter(([each]) => each.startsWith(prefix) && (after === undefined || each > after))
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.map(([, value]) => value);
}

function expectSame(snapshot: OrderedSnapshot<number>, model: ReadonlyMap<string, number>): void {
	expect(snapshot.size).toBe(model.size);
	expect([...snapshot.scan("")]).toEqual(expected(model, ""));
	for (const prefix of ["a", "a\0", "a-b\0", "b", "c", "a\x001"]) {
		expect([...snapshot.scan(prefix)]).toEqual(expected(model, prefix));
		for (const after of ["a\x002", "a-b\x0015", "0", "zzz", prefix]) {
			expect([...snapshot.scan(prefix, after)]).toEqual(expected(model, prefix, after));
		}
	}
}

describe("OrderedMap", () => {
	it("behaves like a map, and its snapshots do not change", () => {
		fc.assert(
			fc.property(fc.array(step, { minLength: 1, maxLength: 1500 }), (steps) => {
				const map = new OrderedMap<number>();
				const model = new Map<string, number>();
				const snapshots: [OrderedSnapshot<number>, ReadonlyMap<string, number>][] = [];
				for (const [value, each] of steps.entries()) {
					switch (each.op) {
						case "set":
							expect(map.set(each.key, value)).toBe(model.get(each.key));
							model.set(each.key, value);
							break;
						case "delete":
							expect(map.delete(each.key)).toBe(model.get(each.key));
							model.delete(each.key);
							break;
						case "delete-many":
							for (const [other] of [...model].filter(([other]) => other > each.key)) {
								expect(map.delete(other)).toBe(model.get(other));
								model.delete(other);
							}
							break;
						case "snapshot":
							if (snapshots.length < 5) {
								snapshots.push([map.snapshot(), new Map(model)]);
							}
					}
					expect(map.size).toBe(model.size);
				}
				expect(map.values()).toEqual(expected(model, ""));
				snapshots.push([map.snapshot(), model]);
				for (const [snapshot, then] of snapshots) {
					expectSame(snapshot, then);
				}
			}),
			{ numRuns: 60 },
		);
	});

	it("grows over several levels and shrinks to nothing, in any order", () => {
		const size = 20_000;
		const shuffled = Array.from({ length: size }, (_, index) => (index * 7919) % size);
		const map = new OrderedMap<number>();
		for (const each of shuffled) {
			map.set(String(each).padStart(6, "0"), each);
		}
		const full = map.snapshot();
		for (const each of shuffled.slice().reverse()) {
			expect(map.delete(String(each).padStart(6, "0"))).toBe(each);
		}
		expect(map.size).toBe(0);
		expect([...map.snapshot().scan("")]).toEqual([]);
		expect([...full.scan("")]).toEqual(Array.from({ length: size }, (_, index) => index));
		map.set("a", 1);
		expect([...map.snapshot().scan("")]).toEqual([1]);
	});

	it("grows in order, is filled up in between, and shrinks to nothing", () => {
		const size = 30_000;
		const keyOf = (number: number) => String(number).padStart(6, "0");
		const map = new OrderedMap<number>();
		for (let each = 0; each < size; each += 2) {
			expect(map.set(keyOf(each), each)).toBeUndefined();
		}
		const even = map.snapshot();
		// Pages that are filled in order are three quarters full, where halves of split ones would be more.
		expect(even.pages().size).toBeLessThan(size / 2 / 40);
		expect(map.set(keyOf(size - 2), -1)).toBe(size - 2);
		for (let each = 1; each < size; each += 2) {
			map.set(keyOf(each), each);
		}
		map.set(keyOf(size - 2), size - 2);
		const full = map.snapshot();
		for (let each = size - 1; each >= 0; each--) {
			expect(map.delete(keyOf(each))).toBe(each);
		}
		map.set("000001", 1);
		map.set("000000", 0);
		expect(map.values()).toEqual([0, 1]);
		expect([...full.scan("")]).toEqual(Array.from({ length: size }, (_, index) => index));
		expect([...even.scan("")]).toEqual(Array.from({ length: size / 2 }, (_, index) => 2 * index));
	});

	it("reads no more of a scan than is consumed", () => {
		const map = new OrderedMap<number>();
		for (let index = 0; index < 1000; index++) {
			map.set(String(index).padStart(4, "0"), index);
		}
		const scan = map.snapshot().scan("", "0499");
		expect(scan.next().value).toBe(500);
		map.set("0501", -1);
		expect(scan.next().value).toBe(501);
	});
});
