import { seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { StreamTable } from "./stream-table.ts";

/** Identifiers that all have the same home slot in a table with 64 slots. */
function collidingIds(count: number): readonly number[] {
	const ids: number[] = [];
	for (let id = 1; ids.length < count; id += 2) {
		if (Math.imul(id, 0x9e37_79b1) >>> 26 === 63) {
			ids.push(id);
		}
	}
	return ids;
}

it.each([
	["consecutive identifiers", Array.from({ length: 300 }, (_, index) => 2 * index + 1)],
	["identifiers that collide", collidingIds(300)],
])("finds the streams that were added and not deleted: %s", async (_, ids) => {
	await forEachSeed(20, async (seed) => {
		const random = seededRandom(seed);
		const table = new StreamTable<{ readonly id: number }>();
		const model = new Map<number, { readonly id: number }>();
		for (let step = 0; step < 2_000; step++) {
			const id = ids[Math.floor(random.next() * ids.length)] ?? 0;
			const known = model.get(id);
			expect(table.get(id)).toBe(known);
			if (known === undefined) {
				const stream = { id };
				expect(table.delete(stream)).toBe(false);
				table.add(stream);
				model.set(id, stream);
			} else if (random.next() < 0.8) {
				expect(table.delete({ id })).toBe(false);
				expect(table.delete(known)).toBe(true);
				model.delete(id);
			}
			expect(table.size).toBe(model.size);
		}
		expect(new Set(table)).toEqual(new Set(model.values()));
		table.clear();
		expect([...table]).toEqual([]);
		expect(ids.some((id) => table.get(id) !== undefined)).toBe(false);
	});
});
