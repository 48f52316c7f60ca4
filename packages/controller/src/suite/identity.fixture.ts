import type { Resource } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { expect } from "vitest";
import type { Change } from "../define/change.ts";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { mapOwner } from "../mappers/owner.ts";
import { type Suite, scenario } from "./scenario.fixture.ts";

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

/** Which objects caches and controllers have. */
export const identity: Suite = {
	title: "what is shared and what is copied",
	scenarios: [
		scenario(
			"caches have one object of each resource, whichever controllers they belong to, and all code gets copies",
			async (bench) => {
				const cached: { readonly kind: string; readonly resource: Resource }[] = [];
				const given: Resource[] = [];
				const noteCached = (change: Change) => {
					if (change.kind === "updated") {
						cached.push({ kind: "primed", resource: change.previous });
					}
					if (change.kind !== "deleted") {
						cached.push({ kind: change.kind, resource: change.current });
					}
					return true;
				};
				const controllers = ["one", "two"].map((name) =>
					defineController({
						name,
						manages: Artist,
						when: noteCached,
						watches: [
							watch(Album, {
								when: noteCached,
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
				const old = await bench.service.put(demo(Artist, "miles", "cornet"));
				await bench.start(controllers);
				const artist = await bench.service.put(
					demo(Artist, "miles", "trumpet", { metadata: { born: "1926" } }),
				);
				await bench.settle();
				const album = await bench.service.put(
					demo(Album, "blue", "Kind of Blue", { owner: old.id! }),
				);
				await bench.settle();

				const versions = new Map([
					["primed", old],
					["updated", artist],
					["created", album],
				]);
				for (const [kind, { id, version }] of versions) {
					const objects = cached
						.filter((each) => each.kind === kind)
						.map(({ resource }) => resource);
					expect(objects).toHaveLength(2);
					expect(objects[0]).toMatchObject({ id: { name: id?.name }, version });
					expect(objects[1]).toBe(objects[0]);
				}
				// Per controller: reconciles of the artist as primed, as updated, and for its album, which is mapped once.
				expect(given).toHaveLength(16);
				for (const copy of given) {
					for (const { resource } of cached) {
						expect(shareNothing(copy, resource)).toBe(true);
					}
				}
				expect((await bench.service.stored(idOf(Artist, "miles")))?.metadata).toEqual({
					born: "1926",
				});
			},
		),

		scenario("hands over the newest incarnation's ID", async (bench) => {
			const seen: string[] = [];
			const controller = defineController({
				name: "artist",
				manages: Artist,
				watches: [watch(Album, { map: () => [idOf(Artist, "miles", {}, "OLD")] })],
				async reconcile(_, { id }) {
					seen.push(id.uid);
				},
			});
			const miles = await bench.service.put(demo(Artist, "miles"));
			await bench.start([controller]);
			await bench.service.put(demo(Album, "blue"));
			await bench.settle();
			expect(new Set(seen)).toEqual(new Set([miles.id?.uid]));
			await bench.service.remove(miles.id!);
			await bench.settle();
			expect(seen.at(-1)).toBe(miles.id?.uid);
		}),
	],
};
