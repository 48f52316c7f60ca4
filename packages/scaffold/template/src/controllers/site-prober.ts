import {
	type Controller,
	contentChanged,
	defineController,
	requeueAfter,
} from "@plinth/plinth/controllers";
import { Condition_State } from "@plinth/plinth/types";
import type { RequestUrl } from "../request-url.ts";
import { Site } from "../types/site.ts";

const intervalMs = 60_000;

/**
 * Requests each site every minute, and at once when it is created or its URL changes. The result is a condition in the
 * status of the site.
 */
export function createSiteProber(requestUrl: RequestUrl): Controller {
	return defineController({
		name: "site-prober",
		manages: Site,
		// Its own writes of statuses are no reason to request a site again.
		when: contentChanged,
		// A slow site does not delay the others.
		concurrency: 16,
		async reconcile(ctx, { id }) {
			const site = ctx.cache.get(Site, id);
			if (site === undefined) {
				return; // It was deleted.
			}
			const { ok, reason, message } = await requestUrl(site.data.url, ctx.signal);
			const state = ok ? Condition_State.TRUE : Condition_State.FALSE;
			await ctx.writeStatusIfChanged(site.resource, {
				conditions: [{ type: "Reachable", state, reason, message }],
			});
			return requeueAfter(intervalMs);
		},
	});
}
