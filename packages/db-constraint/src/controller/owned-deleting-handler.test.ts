import { describe, expect, it, vi } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";
import { HolderQuery } from "../protocol/holder-query.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { OwnedDeletingHandler } from "./owned-deleting-handler.ts";

/** A handler of the deletion of a resource that another deployment holds, after queries with growing pauses. */
async function waiting() {
	const { lab, alpha, beta } = await twoDeployments();
	await lab.run(alpha.write(thing("t")));
	await lab.run(beta.write(widget("w", { belongsTo: to("t") }), "mine"));
	await lab.run(alpha.delete(alpha.id(Thing, "t")));
	await lab.pass(1_000);
	const { context } = alpha.current.constraints;
	const name = shadowName(keyOf(alpha.id(Thing, "t"), "r1"));
	const stored = await readShadow(context.backend, name);
	if (stored === undefined) {
		throw new Error("the resource has no shadow");
	}
	const holderQuery = new HolderQuery(context);
	const responses = await lab.run(holderQuery.all(stored, { deleting: true }));
	alpha.crash();
	beta.crash();
	const query = vi.spyOn(holderQuery, "all").mockImplementation(async () => responses);
	const handler = new OwnedDeletingHandler(context, holderQuery);
	const pass = async () => (await lab.run(handler.handle(name))).requeueAfterMs;
	for (let passes = 0; passes < 10; passes++) {
		await pass();
		await lab.pass(60_000);
	}
	query.mockClear();
	/** A pass during whose query something happens. */
	const passWhile = (happens: () => void) => {
		query.mockImplementationOnce(async () => {
			happens();
			return responses;
		});
		return pass();
	};
	return { handler, name, query, pass, passWhile };
}

describe("the handler of deletions", () => {
	it("queries after growing pauses while the resource is held", async () => {
		const { query, pass } = await waiting();
		expect(await pass()).toBe(60_000);
		expect(await pass()).toBe(60_000);
		expect(query).toHaveBeenCalledTimes(1);
	});

	it("queries again at once if a release is reported while it waits for the response of the holder", async () => {
		const { handler, name, query, pass, passWhile } = await waiting();
		const reported = () => {
			handler.hint(name);
			handler.hasten(name);
		};
		expect(await passWhile(reported)).toBe(0);
		// It does not repeat queries without a pause, however often a release is reported.
		expect(await passWhile(reported)).toBe(100);
		expect(query).toHaveBeenCalledTimes(2);
		expect(await pass()).toBe(100);
		expect(query).toHaveBeenCalledTimes(2);
	});

	it("queries soon if something here has released the resource during a query", async () => {
		const { handler, name, query, pass, passWhile } = await waiting();
		expect(await passWhile(() => handler.hasten(name))).toBe(100);
		expect(await pass()).toBe(100);
		expect(query).toHaveBeenCalledTimes(1);
	});
});
