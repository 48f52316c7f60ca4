import { newUlid } from "@plinth/resource";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Lab } from "../lab/lab.fixture.ts";
import { thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";
import { HolderQuery } from "../protocol/holder-query.ts";
import type { Environment } from "../registry/environment.ts";
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

	it("looks up a missing target again at once if the registry changes during a lookup", async () => {
		const lab = new Lab(1);
		const stored = createMemoryBackend({ runtime: lab.runtime });
		const resource = widget("w", { needs: to("a") });
		const id = { ...lab.idOf(resource), uid: newUlid(lab.runtime) };
		const written = { ...resource, id, generation: newUlid(lab.runtime) };
		await stored.commit([{ op: "put", resource: written, expectedVersion: "" }]);
		const spec = { service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] };
		const beta = await lab.add({ name: "beta-1", ...spec }, () => stored);
		const { context, store } = beta.current.constraints;
		const alphaSpec = { name: "alpha-1", service: "alpha", region: "r1", types: [Thing] };
		const alpha = await lab.add(alphaSpec);
		// The controllers of the deployment look up the target, do not find it, and pause.
		await lab.pass(1_000);
		await lab.run(alpha.write(thing("a")));
		const found = async () =>
			(await beta.shadow(beta.id(Widget, "w")))?.outgoing.map(({ targetUid }) => targetUid !== "");
		expect(await found()).toEqual([false]);
		const name = shadowName(keyOf(beta.id(Widget, "w"), "r1"));
		let isKnown = false;
		let lookups = 0;
		const environment: Environment = {
			...context.environment,
			find: (...place) => (isKnown ? context.environment.find(...place) : undefined),
		};
		const backend = decorateBackend(context.backend, {
			async commit(mutations, options) {
				lookups += 1;
				if (!isKnown) {
					isKnown = true;
					held.registryChanged(name);
				}
				return context.backend.commit(mutations, options);
			},
		});
		const handlers = new HandlersOfHolds({
			context: { ...context, backend, environment },
			holderQuery: new HolderQuery(context),
			store,
		});
		const held = handlers.of({ fence: undefined } as Parameters<typeof handlers.of>[0]);
		expect(await lab.run(held.handleShadow(name))).toEqual({ requeueAfterMs: 0 });
		expect(lookups).toBe(1);
		expect(await found()).toEqual([false]);
		await lab.run(held.handleShadow(name));
		expect(await found()).toEqual([true]);
	});
});
