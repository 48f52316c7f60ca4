import { create } from "@bufbuild/protobuf";
import { defineIndex, type Reader } from "@plinth/cache";
import {
	type Controller,
	chain,
	defineController,
	type Mapper,
	type ReconcileContext,
	sameNameAs,
	watch,
} from "@plinth/controller";
import type { ID } from "@plinth/proto";
import { idOf, type ResourceType } from "@plinth/resource";
import {
	CatalogueSchema,
	type Origin,
	OriginSchema,
	QuoteSchema,
	SummarySchema,
} from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { Catalogue, Item, Quote, Shop, Summary } from "../market-types.fixture.ts";

/** Called when a reconcile begins; returns a function to be called when it ends. */
export type OnReconcile = (controller: string, id: ID, signal: AbortSignal) => () => void;

const itemsByShop = defineIndex("shop", Item, {
	keys: ({ data }) => [[data.shop]],
	key: (shop: string) => [shop],
});

const itemsOfShop: Mapper<typeof Shop.schema> = ({ cache }, { resource }) =>
	cache
		.list(itemsByShop, resource.id?.name ?? "")
		.flatMap((item) => (item.resource.id === undefined ? [] : [item.resource.id]));

const shopOfItem: Mapper<typeof Item.schema> = (_, { data }) => [idOf(Shop, data.shop)];

/**
 * Three controllers whose outputs are inputs of the others:
 *
 * ```
 *   Shop ──┬──────────────▶ catalogues ──▶ Catalogue ──▶ summaries ──▶ Summary
 *          ▼                    ▲
 *   Item ─▶ quotes ──▶ Quote ───┘
 * ```
 *
 * Their writes contain the versions that their caches contained. They write only if the content differs from
 * the cached one, and, except for summaries, without compare-and-swap: only the guarantees of the runner
 * prevent them from undoing their own writes.
 */
export function marketControllers(onReconcile: OnReconcile): readonly Controller[] {
	return [quotes(onReconcile), catalogues(onReconcile), summaries(onReconcile)];
}

function quotes(onReconcile: OnReconcile): Controller {
	return defineController({
		name: "quotes",
		manages: Item,
		concurrency: 2,
		indexes: [itemsByShop],
		watches: [watch(Shop, { map: itemsOfShop }), watch(Quote, { map: sameNameAs(Item) })],
		async reconcile(ctx, { id }) {
			using _ = during(onReconcile("quotes", id, ctx.signal));
			const item = ctx.cache.get(Item, id);
			const existing = ctx.cache.get(Quote, idOf(Quote, id.name));
			if (item === undefined) {
				await deleteExisting(ctx, existing?.resource.id);
				return;
			}
			const shop = ctx.cache.get(Shop, idOf(Shop, item.data.shop));
			const price = item.data.price - (shop?.data.discount ?? 0);
			if (existing?.data.price !== price) {
				const origin = originOf(ctx.cache, [Item, Shop, Quote]);
				await ctx.write(Quote, {
					id: idOf(Quote, id.name),
					data: create(QuoteSchema, { price, origin }),
				});
			}
		},
	});
}

function catalogues(onReconcile: OnReconcile): Controller {
	return defineController({
		name: "catalogues",
		manages: Shop,
		concurrency: 2,
		indexes: [itemsByShop],
		watches: [
			watch(Item, { map: shopOfItem }),
			watch(Quote, { map: chain(sameNameAs(Item), Item, shopOfItem) }),
			watch(Catalogue, { map: sameNameAs(Shop) }),
		],
		async reconcile(ctx, { id }) {
			using _ = during(onReconcile("catalogues", id, ctx.signal));
			const existing = ctx.cache.get(Catalogue, idOf(Catalogue, id.name));
			if (ctx.cache.get(Shop, id) === undefined) {
				await deleteExisting(ctx, existing?.resource.id);
				return;
			}
			const prices: Record<string, number> = {};
			for (const { resource } of ctx.cache.list(itemsByShop, id.name)) {
				const name = resource.id?.name ?? "";
				const quote = ctx.cache.get(Quote, idOf(Quote, name));
				if (quote !== undefined) {
					prices[name] = quote.data.price;
				}
			}
			if (existing === undefined || !samePrices(existing.data.prices, prices)) {
				const origin = originOf(ctx.cache, [Shop, Item, Quote, Catalogue]);
				await ctx.write(Catalogue, {
					id: idOf(Catalogue, id.name),
					data: create(CatalogueSchema, { prices, origin }),
				});
			}
		},
	});
}

function summaries(onReconcile: OnReconcile): Controller {
	return defineController({
		name: "summaries",
		manages: Catalogue,
		watches: [watch(Summary, { map: sameNameAs(Catalogue) })],
		async reconcile(ctx, { id }) {
			using _ = during(onReconcile("summaries", id, ctx.signal));
			const catalogue = ctx.cache.get(Catalogue, id);
			const existing = ctx.cache.get(Summary, idOf(Summary, id.name));
			if (catalogue === undefined) {
				await deleteExisting(ctx, existing?.resource.id);
				return;
			}
			const prices = Object.values(catalogue.data.prices);
			const items = prices.length;
			const total = prices.reduce((sum, price) => sum + price, 0);
			if (existing?.data.items !== items || existing.data.total !== total) {
				const origin = originOf(ctx.cache, [Catalogue, Summary]);
				await ctx.write(Summary, {
					id: idOf(Summary, id.name),
					data: create(SummarySchema, { items, total, origin }),
					...(existing && { version: existing.resource.version }),
				});
			}
		},
	});
}

async function deleteExisting(ctx: ReconcileContext, id: ID | undefined): Promise<void> {
	if (id !== undefined) {
		await ctx.delete(id);
	}
}

/** The cached versions of the types. */
function originOf(cache: Reader, types: readonly ResourceType[]): Origin {
	const origin = create(OriginSchema);
	for (const type of types) {
		const versions: Record<string, string> = {};
		for (const { resource } of cache.iterate(type)) {
			versions[resource.id?.name ?? ""] = resource.version;
		}
		origin.views[type.type.kind] = { $typeName: "acme.market.v1.View", versions };
	}
	return origin;
}

function samePrices(
	a: Readonly<Record<string, number>>,
	b: Readonly<Record<string, number>>,
): boolean {
	const names = Object.keys(a);
	return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function during(end: () => void): Disposable {
	return { [Symbol.dispose]: end };
}
