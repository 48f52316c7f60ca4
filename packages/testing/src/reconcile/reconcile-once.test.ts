import { create } from "@bufbuild/protobuf";
import { defineController, requeueAfter, watch } from "@plinth/controller";
import { Condition_State } from "@plinth/proto";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import {
	CatalogueSchema,
	ItemSchema,
	QuoteSchema,
	ShopSchema,
} from "../../testdata/gen/acme/market/v1/market_pb.ts";
import { Catalogue, Item, Quote, Shop } from "../market-types.fixture.ts";
import { reconcileOnce } from "./reconcile-once.ts";

const shop = resourceOf(Shop, {
	id: idOf(Shop, "a"),
	data: create(ShopSchema, { discount: 1 }),
});
const item = resourceOf(Item, {
	id: idOf(Item, "pen"),
	data: create(ItemSchema, { shop: "a", price: 3 }),
	owner: idOf(Shop, "a"),
});

const counter = defineController({
	name: "counter",
	manages: Shop,
	async reconcile(ctx, { id }) {
		const found = ctx.cache.get(Shop, id);
		if (found === undefined) {
			await ctx.delete(idOf(Catalogue, id.name));
			return;
		}
		const conditions = [{ type: "Counted", state: Condition_State.TRUE }];
		await ctx.writeStatusIfChanged(found.resource, { conditions });
		await ctx.writeIfChanged(Catalogue, {
			id: idOf(Catalogue, id.name),
			data: create(CatalogueSchema, { prices: { any: found.data.discount } }),
		});
		return requeueAfter(5_000);
	},
});

const quoter = defineController({
	name: "quoter",
	manages: Item,
	async reconcile(ctx, { id }) {
		const owner = ctx.cache.get(Item, id)?.resource.owner;
		const stored = owner && (await ctx.read(Shop, owner));
		await ctx.write(Quote, {
			id: idOf(Quote, id.name),
			data: create(QuoteSchema, { price: -(stored?.data.discount ?? 0) }),
		});
	},
});

describe("reconcileOnce", () => {
	const types = [Catalogue, Quote, Shop];

	it.each([
		[["us"], { any: 1, us: 7 }],
		["*" as const, { any: 1, us: 7, eu: 8 }],
		[[], { any: 1 }],
	])("caches copies of the regions that the controller asks for: %j", async (regions, prices) => {
		const controller = defineController({
			name: "counter",
			manages: Item,
			watches: [watch(Shop, { map: () => [], regions })],
			async reconcile(ctx, { id }) {
				const prices = Object.fromEntries(
					ctx.cache
						.list(Shop, { region: "*" })
						.map(({ resource, data }) => [resource.id?.region ?? "any", data.discount]),
				);
				const data = create(CatalogueSchema, { prices });
				await ctx.writeIfChanged(Catalogue, { id: idOf(Catalogue, id.name), data });
			},
		});
		const copies = Object.entries({ us: 7, eu: 8 }).map(([region, discount]) =>
			resourceOf(Shop, {
				id: { ...idOf(Shop, "a"), region },
				data: create(ShopSchema, { discount }),
			}),
		);
		const resources = [shop, ...copies];
		const id = idOf(Item, "pen");
		const { changes } = await reconcileOnce(controller, { id, resources, types });
		const [change] = changes;
		expect(change?.kind === "put" && decode(Catalogue, change.resource).data.prices).toEqual(
			prices,
		);
	});

	it("returns the result, writes and deletions of the reconciler", async () => {
		const { requeue, changes } = await reconcileOnce(counter, {
			id: idOf(Shop, "a"),
			resources: [shop],
			types,
		});
		expect(requeue).toEqual(requeueAfter(5_000));
		const [status, catalogue] = changes;
		expect(status).toMatchObject({
			kind: "put",
			resource: { id: { name: "a" }, status: { counter: { conditions: [{ type: "Counted" }] } } },
		});
		expect(catalogue?.kind === "put" && decode(Catalogue, catalogue.resource).data.prices).toEqual({
			any: 1,
		});
		expect(changes).toHaveLength(2);
	});

	it("reconciles a missing resource, as after a deletion", async () => {
		const { changes } = await reconcileOnce(counter, {
			id: idOf(Shop, "a"),
			resources: [resourceOf(Catalogue, { id: idOf(Catalogue, "a") })],
			types,
		});
		expect(changes).toMatchObject([
			{ kind: "delete", id: { name: "a", type: { kind: "Catalogue" } } },
		]);
	});

	it("stores resources that the controller does not cache, and fills in the uids of owners", async () => {
		const { changes } = await reconcileOnce(quoter, {
			id: idOf(Item, "pen"),
			resources: [shop, item],
			types,
		});
		const [quote] = changes;
		expect(quote?.kind === "put" && decode(Quote, quote.resource).data.price).toBe(-1);
	});

	it("fails with the error of the reconciler, and names a missing owner", async () => {
		const failing = defineController({
			name: "failing",
			manages: Shop,
			reconcile: async () => {
				throw new Error("no");
			},
		});
		await expect(reconcileOnce(failing, { id: idOf(Shop, "a") })).rejects.toThrow("no");
		await expect(
			reconcileOnce(quoter, { id: idOf(Item, "pen"), resources: [item], types }),
		).rejects.toThrow(
			"must be among the resources or have a uid: market.v1.Shop default/default/a",
		);
	});
});
