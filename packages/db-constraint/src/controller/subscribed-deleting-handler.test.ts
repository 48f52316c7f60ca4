import { isMarkedForDeletion } from "@plinth/resource";
import { afterEach, describe, expect, it, vi } from "vitest";
import { oneDeployment, thing, to } from "../lab/things.fixture.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { SubscribedDeletingHandler } from "./subscribed-deleting-handler.ts";

/** A deployment with a resource "t", and a handler of its own. */
async function start(limits: Partial<ConstraintLimits> = {}) {
	const { lab, alpha, id } = await oneDeployment(limits);
	const target = await lab.run(alpha.write(thing("t")));
	const { context, store } = alpha.current.constraints;
	const handler = new SubscribedDeletingHandler(context, store);
	const deletion = {
		deploymentUid: alpha.info.uid,
		target: keyOf(id("t"), ""),
		targetUid: target.id?.uid ?? "",
	};
	const pass = () => lab.run(handler.handle(deletion));
	return { lab, alpha, id, handler, deletion, pass };
}

afterEach(() => {
	vi.restoreAllMocks();
});

describe("the handler of received deletions", () => {
	it("has nothing to do for what is being deleted already, and waits for its finalizers", async () => {
		const { lab, alpha, id, pass } = await start();
		await lab.run(alpha.write(thing("part", { belongsTo: to("t") }), "mine"));
		await lab.run(alpha.delete(id("t")));
		await lab.pass(1_000);
		expect(await alpha.read(id("part"))).toMatchObject({
			metadata: { finalizers: expect.stringMatching(/mine/) },
		});
		expect(await pass()).toEqual({});
	});

	it("leaves what references the next incarnation of a deleted resource, if it learns of the deletion late", async () => {
		const { lab, alpha, id, pass } = await start();
		await lab.run(alpha.delete(id("t")));
		await lab.run(alpha.write(thing("t")));
		await lab.run(alpha.write(thing("part", { belongsTo: to("t") })));
		await lab.pass(1_000);
		expect(await pass()).toEqual({});
		const part = await alpha.read(id("part"));
		expect(part && isMarkedForDeletion(part)).toBe(false);
	});

	it("waits longer each time for what is blocked, until it has forgotten the deletion", async () => {
		const { lab, alpha, id, handler, deletion, pass } = await start();
		await lab.run(alpha.write(thing("part", { belongsTo: to("t") })));
		await lab.run(alpha.write(thing("other", { needs: to("part") })));
		await lab.run(alpha.delete(id("t")));
		for (let passes = 0; passes < 4; passes++) {
			await pass();
		}
		expect((await pass()).requeueAfterMs).toBeGreaterThanOrEqual(16_000);
		handler.forget(deletion);
		expect((await pass()).requeueAfterMs).toBeLessThanOrEqual(3_000);
	});

	it.each([
		["in one page", {}],
		["in many pages", { pageSize: 2 }],
	])("forgets each deletion once nothing is left to be done, %s", async (_pages, limits) => {
		const remembered = new Set<string>();
		const { handle, forget } = SubscribedDeletingHandler.prototype;
		vi.spyOn(SubscribedDeletingHandler.prototype, "handle").mockImplementation(async function (
			this: SubscribedDeletingHandler,
			deletion,
		) {
			const result = await handle.call(this, deletion);
			if (result.requeueAfterMs !== undefined) {
				remembered.add(deletion.targetUid);
			}
			return result;
		});
		vi.spyOn(SubscribedDeletingHandler.prototype, "forget").mockImplementation(function (
			this: SubscribedDeletingHandler,
			deletion,
		) {
			forget.call(this, deletion);
			remembered.delete(deletion.targetUid);
		});
		const { lab, alpha, id } = await start(limits);
		for (let i = 0; i < 10; i++) {
			await lab.run(alpha.write(thing(`t-${i}`)));
			for (let part = 0; part < 4; part++) {
				await lab.run(alpha.write(thing(`part-${i}-${part}`, { belongsTo: to(`t-${i}`) })));
			}
			await lab.run(alpha.write(thing(`other-${i}`, { needs: to(`part-${i}-0`) })));
			await lab.run(alpha.delete(id(`t-${i}`)));
		}
		await lab.pass(10_000);
		expect(remembered.size).toBe(10);
		for (let i = 0; i < 10; i++) {
			// What was blocked references the target no longer, or is not blocked any more.
			await lab.run<unknown>(
				i % 2 ? alpha.write(thing(`part-${i}-0`)) : alpha.delete(id(`other-${i}`)),
			);
		}
		await lab.pass(600_000);
		expect(await alpha.read(id("t-0"))).toBeUndefined();
		expect(await alpha.read(id("t-9"))).toBeUndefined();
		expect(remembered.size).toBe(0);
	});
});
