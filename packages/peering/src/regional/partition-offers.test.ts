import { create } from "@bufbuild/protobuf";
import { NamespaceSchema, PartitionSchema } from "@plinth/proto";
import { idOf, Namespace, newUlid, Partition, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	generationOf,
	type PartitionOffer,
	partitionOffers,
	untilOfferChanged,
} from "./partition-offers.ts";

/** The policies of some partitions, and of their namespaces: the regions that they name. */
type Policies = Readonly<Record<string, { own: string[]; namespaces: Record<string, string[]> }>>;

const units = ["a", "b", "ab"];
const regions = fc.uniqueArray(fc.constantFrom("r1", "r2", "r3"));
const policies: fc.Arbitrary<Policies> = fc.dictionary(
	fc.constantFrom(...units),
	fc.record({ own: regions, namespaces: fc.dictionary(fc.constantFrom(...units), regions) }),
);

async function stored(all: Policies) {
	const backend = createMemoryBackend();
	const put = async (partition: string, named: string[], namespace?: string) => {
		const id =
			namespace === undefined
				? idOf(Partition, partition)
				: idOf(Namespace, namespace, { partition });
		const before = await backend.lookup(id);
		const uid = before?.id?.uid ?? newUlid(systemRuntime);
		const copies = { regions: named };
		const resource =
			namespace === undefined
				? resourceOf(Partition, {
						id: { ...id, uid },
						data: create(PartitionSchema, { copies }),
					})
				: resourceOf(Namespace, {
						id: { ...id, uid },
						data: create(NamespaceSchema, { copies }),
					});
		await backend.commit([{ op: "put", resource, expectedVersion: before?.version ?? "" }]);
	};
	for (const [partition, { own, namespaces }] of Object.entries(all)) {
		await put(partition, own);
		for (const [namespace, named] of Object.entries(namespaces)) {
			await put(partition, named, namespace);
		}
	}
	return { backend, put };
}

/** What is offered, one namespace at a time. */
function model(all: Policies, region: string): Record<string, "all" | string[]> {
	const offered: Record<string, "all" | string[]> = {};
	for (const [partition, { own, namespaces }] of Object.entries(all)) {
		const named = Object.keys(namespaces).filter((each) => namespaces[each]?.includes(region));
		if (own.includes(region)) {
			offered[partition] = "all";
		} else if (named.length > 0) {
			offered[partition] = named.sort();
		}
	}
	return offered;
}

function shown(offers: readonly PartitionOffer[]): Record<string, "all" | string[]> {
	return Object.fromEntries(
		offers.map(({ partition, namespaces }) => [
			partition,
			namespaces === undefined ? "all" : [...namespaces].sort(),
		]),
	);
}

describe("what policies offer to a region", () => {
	it("is all of a partition that names it, and otherwise the namespaces that do", () =>
		fc.assert(
			fc.asyncProperty(policies, fc.constantFrom("r1", "r2"), async (all, region) => {
				const { backend } = await stored(all);
				const offers = await partitionOffers(backend, region, "*", {});
				expect(shown(offers)).toEqual(model(all, region));
				expect(offers.map(({ partition }) => partition)).toEqual(
					Object.keys(model(all, region)).sort(),
				);
				for (const partition of units) {
					const one = await partitionOffers(backend, region, partition, {});
					expect(one).toEqual(offers.filter((each) => each.partition === partition));
				}
				await backend.close();
			}),
		));

	it("has a generation that changes with it, and with nothing else", () =>
		fc.assert(
			fc.asyncProperty(policies, policies, async (before, after) => {
				const [was, is] = await Promise.all(
					[before, after].map(async (all) => {
						const { backend } = await stored(all);
						const [offer] = await partitionOffers(backend, "r1", "a", {});
						await backend.close();
						return offer;
					}),
				);
				if (was !== undefined && is !== undefined) {
					const isSame = JSON.stringify(shown([was])) === JSON.stringify(shown([is]));
					expect(generationOf(was, ["a.v1.A"]) === generationOf(is, ["a.v1.A"])).toBe(isSame);
					expect(generationOf(was, ["a.v1.A"])).not.toBe(generationOf(was, ["a.v2.A"]));
				}
			}),
		));

	it("is followed until it changes: a stream ends then, and not before", () =>
		fc.assert(
			fc.asyncProperty(
				policies,
				fc.array(fc.tuple(fc.option(fc.constantFrom(...units)), regions), { maxLength: 6 }),
				async (all, changes) => {
					const { backend, put } = await stored({ a: { own: [], namespaces: {} }, ...all });
					const [offer] = await partitionOffers(backend, "r1", "a", {});
					if (offer === undefined) {
						return;
					}
					const end = new AbortController();
					let hasEnded = false;
					const ended = untilOfferChanged(backend, offer, "r1", end.signal).then(
						() => {
							hasEnded = true;
						},
						() => {},
					);
					for (const [namespace, named] of changes) {
						await put("a", named, namespace ?? undefined);
						const [now] = await partitionOffers(backend, "r1", "a", {});
						const isSame = now !== undefined && generationOf(now, []) === generationOf(offer, []);
						if (!isSame) {
							await ended;
							return;
						}
						// What the watches have to say, they have said.
						await new Promise((resolve) => setImmediate(resolve));
						expect(hasEnded).toBe(false);
					}
					end.abort(new Error("the test has ended"));
					await ended;
					await backend.close();
				},
			),
		));
});
