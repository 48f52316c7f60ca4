import type { DescMessage } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { decode, type ResourceType } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import type { Origin } from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { Catalogue, Item, Quote, Shop, Summary } from "../market-types.fixture.ts";

/** The inputs recorded in a computed resource; `undefined` if a user wrote it. */
export function originIn(resource: Resource): Origin | undefined {
	switch (resource.id?.type?.kind) {
		case "Quote":
			return decode(Quote, resource).data.origin;
		case "Catalogue":
			return decode(Catalogue, resource).data.origin;
		case "Summary":
			return decode(Summary, resource).data.origin;
		default:
			return undefined;
	}
}

/** The expected computed resources, as a pure function of the users' declarations, and the stored ones. */
export async function compareWithModel(
	backend: StorageBackend,
): Promise<{ readonly expected: object; readonly actual: object }> {
	const shops = await all(backend, Shop);
	const items = await all(backend, Item);
	const quotes = new Map(
		[...items].map(([name, { shop, price }]) => [name, price - (shops.get(shop)?.discount ?? 0)]),
	);
	const catalogues = new Map(
		[...shops.keys()].map((shop) => [
			shop,
			Object.fromEntries([...quotes].filter(([item]) => items.get(item)?.shop === shop)),
		]),
	);
	const summaries = [...catalogues].map(([shop, prices]) => {
		const values = Object.values(prices);
		return [shop, { items: values.length, total: values.reduce((sum, price) => sum + price, 0) }];
	});
	return {
		expected: {
			quotes: Object.fromEntries(quotes),
			catalogues: Object.fromEntries(catalogues),
			summaries: Object.fromEntries(summaries),
		},
		actual: {
			quotes: mapped(await all(backend, Quote), ({ price }) => price),
			catalogues: mapped(await all(backend, Catalogue), ({ prices }) => prices),
			summaries: mapped(await all(backend, Summary), (data) => ({
				items: data.items,
				total: data.total,
			})),
		},
	};
}

async function all<Desc extends DescMessage>(backend: StorageBackend, type: ResourceType<Desc>) {
	const tenancy = { partition: "*", namespace: "*" };
	const { resources } = await backend.list({ type: type.type, tenancy, namePrefix: "" });
	return new Map(
		resources.map((resource) => [resource.id?.name ?? "", decode(type, resource).data]),
	);
}

function mapped<From, To>(from: ReadonlyMap<string, From>, to: (value: From) => To) {
	return Object.fromEntries([...from].map(([name, value]) => [name, to(value)]));
}
