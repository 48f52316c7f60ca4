import { defineType } from "@plinth/resource";
import {
	CatalogueSchema,
	ItemSchema,
	QuoteSchema,
	ShopSchema,
	SummarySchema,
} from "../testdata/gen/acme/market/v1/market_pb.ts";

/** A shop, as users declare it. */
export const Shop = defineType(ShopSchema);
/** An item of a shop, as users declare it. */
export const Item = defineType(ItemSchema);
/** Computed for each item. */
export const Quote = defineType(QuoteSchema);
/** Computed for each shop. */
export const Catalogue = defineType(CatalogueSchema);
/** Computed for each catalogue. */
export const Summary = defineType(SummarySchema);

/** All types of the market. */
export const marketTypes = [Shop, Item, Quote, Catalogue, Summary] as const;
