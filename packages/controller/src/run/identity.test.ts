import type { Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { TestBench } from "../running-manager.fixture.ts";

/** Every object within a message, the message included, but for empty bytes: they can't be written to. */
function objectsOf(value: unknown, found = new Set<object>()): Set<object> {
	const isEmptyBytes = value instanceof Uint8Array && value.length === 0;
	if (typeof value === "object" && value !== null && !isEmptyBytes && !found.has(value)) {
		found.add(value);
		for (const part of Object.values(value)) {
			objectsOf(part, found);
		}
	}
	return found;
}

function shareNothing(a: unknown, b: unknown): boolean {
	const objects = objectsOf(a);
	return [...objectsOf(b)].every((object) => !objects.has(object));
}

describe("what is shared and what is copied", () => {
	it("caches the service's own objects, in every controller, and gives copies to all code", async () => {
		await using bench = new TestBench();
		const cached: Resource[] = [];
		const given: Resource[] = [];
		const controllers = ["one", "two"].map((name) =>
			defineController({
				name,
				manages: Artist,
				when: (change) => {
					if (change.kind === "created") {
						cached.push(change.current);
					}
					return true;
				},
				watches: [
					watch(Album, {
						map: (context, changed) => {
							given.push(changed.resource);
							const again = context.cache.get(Album, changed.resource.id ?? { name: "" });
							if (again !== undefined) {
								given.push(again.resource);
							}
							return mapOwner(context, changed);
						},
					}),
				],
				async reconcile(context, { id }) {
					const found = context.cache.get(Artist, id);
					const read = await context.read(Artist, id);
					if (found !== undefined && read !== undefined) {
						given.push(found.resource, read.resource);
						found.resource.metadata.changed = "by its owner";
						id.name = "changed";
					}
				},
			}),
		);
		await bench.start(controllers);
		const artist = bench.service.put(
			demo(Artist, "miles", "trumpet", { metadata: { born: "1926" } }),
		);
		const album = bench.service.put(demo(Album, "blue", "Kind of Blue", { owner: artist.id! }));
		await bench.settle();

		expect(cached.length).toBe(2);
		expect(cached.every((resource) => resource === artist)).toBe(true);
		expect(given.length).toBe(12);
		for (const copy of given) {
			expect(shareNothing(copy, artist)).toBe(true);
			expect(shareNothing(copy, album)).toBe(true);
		}
		expect(bench.service.stored(idOf(Artist, "miles"))?.metadata).toEqual({ born: "1926" });
	});

	it("hands over the newest incarnation's ID", async () => {
		await using bench = new TestBench();
		const seen: string[] = [];
		const controller = defineController({
			name: "artist",
			manages: Artist,
			watches: [watch(Album, { map: () => [idOf(Artist, "miles", {}, "OLD")] })],
			async reconcile(_, { id }) {
				seen.push(id.uid);
			},
		});
		const miles = bench.service.put(demo(Artist, "miles"));
		await bench.start([controller]);
		bench.service.put(demo(Album, "blue"));
		await bench.settle();
		expect(new Set(seen)).toEqual(new Set([miles.id?.uid]));
		bench.service.remove(miles.id!);
		await bench.settle();
		expect(seen.at(-1)).toBe(miles.id?.uid);
	});
});
