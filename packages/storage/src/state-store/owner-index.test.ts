import { create } from "@bufbuild/protobuf";
import { type ID, IDSchema, type Resource, ResourceSchema } from "@plinth/proto";
import { familyKey } from "@plinth/resource";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OwnerIndex } from "./owner-index.ts";
import { orderKey } from "./resource-key.ts";

const unit = fc.constantFrom("a", "ab", "a-b");
const tenancy = fc.record({ partition: unit, namespace: unit });
/** Names of groups that sort differently alone and within the name of a family. */
const type = fc.record({
	group: fc.constantFrom("demo", "demo-2", "demo.x"),
	groupVersion: fc.constantFrom("v1", "v2"),
	kind: fc.constantFrom("Album", "Song"),
});
const id = fc
	.record({ type, tenancy, name: fc.nat(12).map((number) => `n${number}`) })
	.map((parts): ID => create(IDSchema, parts));
const owner = fc
	.record({ name: fc.constantFrom("x", "y"), uid: fc.constantFrom("1", "2", "") })
	.map((parts): ID => create(IDSchema, parts));
const step = fc.record({
	id,
	owner: fc.option(owner, { nil: undefined, freq: 5 }),
	isDeletion: fc.boolean(),
	/** Lists sort: some changes come between them, some after. */
	isListed: fc.boolean(),
	/** How many resources with names of their own change with it. */
	more: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 150 })),
});

/** A model: all resources by name. */
class Model {
	readonly stored = new Map<string, Resource>();

	list(owner: ID): Resource[] {
		return [...this.stored]
			.filter(([, { owner: own }]) => owner.uid !== "" && own?.uid === owner.uid)
			.filter(([, { owner: own }]) => own?.name === owner.name)
			.sort(([a], [b]) => (a < b ? -1 : 1))
			.map(([, resource]) => resource);
	}
}

function keyOf(id: ID): string {
	return `${id.type === undefined ? "" : familyKey(id.type)}\0${orderKey(id)}`;
}

describe("OwnerIndex", () => {
	it("lists what an incarnation owns, in order, after each change", () => {
		fc.assert(
			fc.property(fc.array(step, { maxLength: 40, size: "max" }), (steps) => {
				const index = new OwnerIndex();
				const model = new Model();
				const lists: { readonly listed: readonly Resource[]; readonly then: Resource[] }[] = [];
				for (const { id, owner, isDeletion, isListed, more } of steps) {
					for (let count = 0; count <= more; count++) {
						const named = { ...id, name: count === 0 ? id.name : `m${count}` };
						const key = keyOf(named);
						const previous = model.stored.get(key);
						const resource = isDeletion
							? undefined
							: create(ResourceSchema, { id: named, ...(owner && { owner }) });
						index.update(previous, resource);
						if (resource === undefined) {
							model.stored.delete(key);
						} else {
							model.stored.set(key, resource);
						}
					}
					for (const name of isListed ? ["x", "y"] : []) {
						for (const uid of ["1", "2", ""]) {
							const asked = create(IDSchema, { name, uid });
							const listed = index.list(asked);
							const then = model.list(asked);
							expect(same(listed, then)).toBe(true);
							lists.push({ listed, then });
						}
					}
				}
				expect(lists.every(({ listed, then }) => same(listed, then))).toBe(true);
			}),
			{ numRuns: 40 },
		);
	});
});

/** Compared by identity: the index has the resources themselves. */
function same(a: readonly Resource[], b: readonly Resource[]): boolean {
	return a.length === b.length && a.every((resource, at) => resource === b[at]);
}
