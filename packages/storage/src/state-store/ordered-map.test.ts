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
