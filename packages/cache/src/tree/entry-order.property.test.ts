import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import fc from "fast-check";
import { expect, it } from "vitest";
import { AlbumSchema } from "../../testdata/src/gen/demo/v2/demo_pb.ts";
import { Album } from "../demo-types.fixture.ts";
import { sortEntries, sortFew } from "./entry-order.ts";
import { Entry, type Node, place } from "./node.ts";
import { Tree } from "./tree.ts";

const unit = fc.constantFrom("p", "pq", "q");
const named = fc.record({ partition: unit, namespace: unit, name: fc.nat(300) });

it("sorts a few entries as it sorts many: by tenancy, then by name", () => {
	fc.assert(
		fc.property(
			fc.uniqueArray(named, { maxLength: 128, selector: (each) => JSON.stringify(each) }),
			fc.boolean(),
			(parts, isOneTenancy) => {
				const tree = new Tree("by-name");
				const homes = new Map<string, Node>();
				const entries = new Map<string, Entry>();
				for (const { partition, namespace, name } of parts) {
					const tenancy = isOneTenancy
						? { partition: "p", namespace: "p" }
						: { partition, namespace };
					const key = `${tenancy.partition}/${tenancy.namespace}`;
					const home = homes.get(key) ?? tree.ensure([tenancy.partition, tenancy.namespace]);
					homes.set(key, home);
					const id = idOf(Album, `a${name}`, tenancy);
					const entry = new Entry(Album, resourceOf(Album, { id, data: create(AlbumSchema) }));
					place(entry, home, []);
					entries.set(`${key}/${name}`, entry);
				}
				const few = [...entries.values()];
				const expected = sortEntries(few);
				sortFew(few);
				expect(few.length).toBe(expected.length);
				expect(few.every((entry, at) => entry === expected[at])).toBe(true);
			},
		),
		{ numRuns: 100 },
	);
});
