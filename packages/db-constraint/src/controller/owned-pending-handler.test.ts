import { decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";
import { HolderQuery } from "../protocol/holder-query.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { recordId } from "../shadow/shadow-records.ts";
import { HandlersOfHolds } from "./shadow-handlers.ts";

describe("the handler of pending work", () => {
	it("takes reports of releases after very many about what is being deleted", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const nameOf = (name: string) => shadowName(keyOf(alpha.id(Thing, name), "r1"));
		for (const name of ["deleted", "kept"]) {
			await lab.run(alpha.write(thing(name)));
		}
		await lab.run(beta.write(widget("w", { likes: [to("deleted"), to("kept")] })));
		await lab.run(alpha.write(thing("deleted"), "mine"));
		await lab.run(alpha.delete(alpha.id(Thing, "deleted")));
		await lab.pass(10_000);
		const { context, store } = alpha.current.constraints;
		// Every other name is that of the same shadow.
		const deleted = recordId(nameOf("deleted"));
		const backend = decorateBackend(context.backend, {
			lookup: (id, options) =>
				context.backend.lookup(id.name.startsWith("also-") ? deleted : id, options),
		});
		const holderQuery = new HolderQuery(context);
		const asked = vi.spyOn(holderQuery, "one");
		const handlers = new HandlersOfHolds({ context: { ...context, backend }, holderQuery, store });
		const held = handlers.of({ fence: undefined } as Parameters<typeof handlers.of>[0]);
		for (let i = 0; i < 10_000; i++) {
			held.hint(`also-${i}`, beta.info.uid);
			await lab.run(held.handleShadow(`also-${i}`));
		}
		held.hint(nameOf("kept"), beta.info.uid);
		asked.mockClear();
		await lab.run(held.handleShadow(nameOf("kept")));
		expect(asked).toHaveBeenCalledTimes(1);
	});
});
