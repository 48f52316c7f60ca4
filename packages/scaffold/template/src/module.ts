import { defineModule } from "@plinth/plinth/server";
import { createSiteProber } from "./controllers/site-prober.ts";
import { requestUrl } from "./request-url.ts";
import { Site } from "./types/site.ts";

/** What the server loads: all types and controllers. */
export default defineModule({
	name: "my-platform",
	types: [Site],
	controllers: [createSiteProber(requestUrl)],
});
