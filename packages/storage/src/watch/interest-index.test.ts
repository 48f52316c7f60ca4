import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ListQuery, matches } from "../query.ts";
import { InterestIndex } from "./interest-index.ts";

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
const unit = fc.constantFrom("", "p", "q");
const units = fc.constantFrom("", "p", "q", "*");
const name = fc.string({ unit: fc.constantFrom("a", "b", "é", "𝄞"), maxLength: 4 });

const cursor = fc
	.record({
		tenancy: fc.record({ partition: units, namespace: units }),
		namePrefix: name,
		region: fc.constantFrom(undefined, "", "us", "eu", "*"),
	})
	.map((query) => ({ query: { ...query, type } satisfies ListQuery }));

const resource = fc
	.record({
		...{ partition: unit, namespace: unit, name },
		region: fc.constantFrom(undefined, "us", "us-2"),
		isImported: fc.boolean(),
	})
	.map(({ name, region, isImported, ...tenancy }) =>
		create(ResourceSchema, {
			id: { name, type, tenancy, ...(region && { region }) },
			...(isImported && { origin: { uid: "original" } }),
		}),
	);

function found<C>(index: { concerned(resource: Resource, found: (cursor: C) => void): void }) {
	return (each: Resource) => {
		const cursors: C[] = [];
		index.concerned(each, (cursor) => cursors.push(cursor));
		return cursors;
	};
}

describe("InterestIndex", () => {
	it("finds the cursors whose query matches, once each, as cursors come and go", () => {
		fc.assert(
			fc.property(
				fc.array(fc.record({ cursor, leaves: fc.boolean() }), { maxLength: 40 }),
				fc.array(resource, { maxLength: 20 }),
				(steps, resources) => {
					const index = new InterestIndex<{ readonly query: ListQuery }>();
					const added = new Set<{ readonly query: ListQuery }>();
					for (const { cursor, leaves } of steps) {
						index.add(cursor);
						added.add(cursor);
						const [first] = added;
						if (leaves && first !== undefined) {
							index.delete(first);
							added.delete(first);
						}
					}
					for (const each of resources) {
						const concerned = found(index)(each);
						expect(new Set(concerned)).toEqual(
							new Set([...added].filter(({ query }) => matches(query, each))),
						);
						expect(new Set(concerned).size).toBe(concerned.length);
					}
					for (const each of added) {
						index.delete(each);
						index.delete(each);
					}
					expect(resources.flatMap(found(index))).toEqual([]);
				},
			),
		);
	});

	it("asks no cursor that a resource does not concern", () => {
		const index = new InterestIndex<{ readonly query: ListQuery }>();
		let asked = 0;
		for (let at = 0; at < 5_000; at++) {
			const query = { type, tenancy: { partition: "*", namespace: "*" }, namePrefix: `name-${at}` };
			index.add({
				get query() {
					asked += 1;
					return query;
				},
			});
		}
		asked = 0;
		const one = create(ResourceSchema, { id: { name: "name-4999x", type, tenancy: {} } });
		expect(found(index)(one)).toHaveLength(4);
		expect(asked).toBe(0);
	});
});
