import { defineController } from "@plinth/controller";
import { defineModule } from "../../../src/module/index.ts";
import { Artist } from "../../music.ts";

/** Fails once for each artist whose name begins with `bad`, and is not tried again during a test. */
const failing = {
	manages: Artist,
	backoff: { baseMs: 3_600_000, maxMs: 3_600_000 },
	async reconcile(_: unknown, { id }: { readonly id: { readonly name: string } }) {
		if (id.name.startsWith("bad")) {
			throw new Error(`no label for ${id.name}`);
		}
	},
} as const;

/** Controllers of both placements, which fail at some artists. */
export default defineModule({
	name: "failing",
	types: [Artist],
	controllers: [
		defineController({ ...failing, name: "singers" }),
		defineController({ ...failing, name: "bookers", placement: "sharded" }),
	],
});
