import { systemRuntime } from "@plinth/runtime";
import fc from "fast-check";
import { expect, it } from "vitest";
import { idOf, query, resource } from "./conformance/test-resources.ts";
import { defaultStorageLimits } from "./limits.ts";
import { type ListQuery, matches } from "./query.ts";
import { StateStore } from "./state-store/state-store.ts";

interface Named {
	readonly partition: string;
	readonly namespace: string;
	readonly name: string;
	readonly region?: string | undefined;
	readonly isImported?: boolean;
}

function storeOf(names: readonly Named[]): StateStore {
	const store = new StateStore(systemRuntime, defaultStorageLimits);
	for (const { name, ...tenancy } of names) {
		store.load(resource(name, tenancy));
	}
	store.begin(1);
	return store;
}

/** The number of names that a list visits, and of resources that it finds. */
function visits(store: StateStore, requested: ListQuery): { visited: number; found: number } {
	const visited = [...store.snapshot(requested).visit()];
	return { visited: visited.length, found: visited.filter((each) => each !== undefined).length };
}

it("visits at most two names of each namespace besides those with the prefix, however many there are", () => {
	const namespaces = 20;
	for (const resources of [10, 100, 1_000]) {
		const names: Named[] = [];
		for (let namespace = 0; namespace < namespaces; namespace += 1) {
			for (let number = 0; number < resources; number += 1) {
				const partition = namespace % 2 === 0 ? "p" : "q";
				names.push({ partition, namespace: `n${namespace}`, name: `r${number}` });
			}
		}
		const store = storeOf(names);
		const rare = visits(store, query({ partition: "*", namespace: "*", prefix: "r5" }));
		const withPrefix = names.filter(({ name }) => name.startsWith("r5")).length;
		expect(rare.found).toBe(withPrefix);
		expect(rare.visited - rare.found).toBeLessThanOrEqual(2 * namespaces);
		const inPartition = visits(store, query({ partition: "p", namespace: "*", prefix: "r5" }));
		expect(inPartition.visited - inPartition.found).toBeLessThanOrEqual(namespaces);
		expect(visits(store, query({ partition: "*", namespace: "n3" }))).toEqual({
			visited: resources + 4,
			found: resources,
		});
		expect(visits(store, query({ partition: "*", namespace: "*", prefix: "none" })).found).toBe(0);
	}
});

it("finds what a filter finds, from the start and after any name", () => {
	const unit = fc.constantFrom("", "a", "a-b", "a0", "b", "ba");
	const name = fc.string({ unit: fc.constantFrom("a", "b", "-", "0"), minLength: 1, maxLength: 4 });
	const region = fc.constantFrom(undefined, undefined, "us", "us-2");
	const isImported = fc.boolean();
	const named = fc.record({ partition: unit, namespace: unit, name, region, isImported });
	const wanted = fc.constantFrom("*", "", "a", "a-b", "b", "none");
	const prefix = fc.constantFrom("", "a", "a-", "b0", "none");
	fc.assert(
		fc.property(
			fc.array(named, { maxLength: 300 }),
			fc.record({
				...{ partition: wanted, namespace: wanted, prefix },
				region: fc.constantFrom("", "us", "us-2", "none", "*"),
			}),
			fc.option(named, { nil: undefined }),
			(names, selection, after) => {
				const store = storeOf(names);
				const requested = query(selection);
				const all = [...store.snapshot(query({ region: "*" })).resources()];
				const place = after && { name: after.name, tenancy: after, region: after.region };
				const expected = all.filter(
					(each) =>
						matches(requested, each) && (place === undefined || key(idOf(each)) > key(place)),
				);
				expect([...store.snapshot(requested).resources(place)]).toEqual(expected);
			},
		),
	);
});

function key({
	tenancy,
	name,
	region = "",
}:
	| ReturnType<typeof idOf>
	| { tenancy: Named; name: string; region?: string | undefined }): string {
	return `${region}\0${tenancy?.partition}\0${tenancy?.namespace}\0${name}`;
}
