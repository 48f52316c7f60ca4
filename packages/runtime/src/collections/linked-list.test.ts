import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { seededRandom } from "../testing/index.ts";
import { LinkedList, type ListEntry } from "./linked-list.ts";

it("has the elements that were appended and not removed, in their order", async () => {
	await forEachSeed(50, async (seed) => {
		const random = seededRandom(seed);
		const list = new LinkedList<number>();
		const entries = new Map<number, ListEntry<number>>();
		const removed: ListEntry<number>[] = [];
		for (let step = 0; step < 200; step++) {
			const action = random.next();
			if (action < 0.5) {
				entries.set(step, list.append(step));
			} else if (action < 0.6) {
				const first = [...entries.keys()][0];
				expect(list.shift()).toBe(first);
				entries.delete(first ?? -1);
			} else {
				const keys = [...entries.keys()];
				const key = keys[Math.floor(random.next() * keys.length)];
				const entry = entries.get(key ?? -1);
				if (key !== undefined && entry !== undefined) {
					expect(entry.remove()).toBe(true);
					expect(entry.remove()).toBe(false);
					entries.delete(key);
					removed.push(entry);
				}
			}
			expect([...list]).toEqual([...entries.keys()]);
			expect(list.size).toBe(entries.size);
			expect(list.first).toBe([...entries.keys()][0]);
		}
		for (const { list: of, previous, next } of removed) {
			expect([of, previous, next]).toEqual([undefined, undefined, undefined]);
		}
	});
});

it("skips elements that are removed during an iteration, and those that are added", () => {
	const list = new LinkedList<string>();
	const entries = ["a", "b", "c"].map((each) => list.append(each));
	const seen: string[] = [];
	for (const each of list) {
		seen.push(each);
		entries[1]?.remove();
		list.append("d");
	}
	expect(seen).toEqual(["a", "c"]);
});
