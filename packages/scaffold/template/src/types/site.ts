import { defineType } from "@plinth/plinth/types";
import { SiteSchema } from "../gen/my_platform/v1/site_pb.ts";

/** A web site that must be reachable. */
export const Site = defineType(SiteSchema, {
	// Fills in defaults, before the rules of the proto are checked.
	mutate: ({ data }) => {
		data.url = data.url.trim();
	},
});
