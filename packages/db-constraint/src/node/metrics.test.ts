import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { hooked, thing, to, twoDeployments, widget } from "../lab/things.fixture.ts";

const none = { count: 0, oldestMs: 0 };

describe("the metrics of references", () => {
	it("follow the shadows, and are zero again once everything is deleted", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const { metrics } = alpha.current.constraints;
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") })));
		await lab.run(beta.write(widget("v", { belongsTo: to("a") })));
		await lab.pass(60_000);
		expect(metrics()).toMatchObject({
			sources: { confirmed: 1, tentative: 0 },
			waiting: { pending: none, checking: none, deleting: none },
			cascades: 0,
		});
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(60_000);
		const { holderQueries, ...rest } = metrics();
		expect(rest).toEqual({
			sources: { confirmed: 0, tentative: 0 },
			waiting: { pending: none, checking: none, deleting: none },
			cascades: 0,
		});
		expect(holderQueries).toEqual([
			{ service: "beta", region: "r1", sent: expect.any(Number), failed: 0 },
		]);
		expect(holderQueries[0]?.sent).toBeGreaterThanOrEqual(2);
	});

	it("count waiting resources, the age of the oldest, and holder queries without response", async () => {
		let isCut = false;
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				if (isCut && method !== "EstablishReferences") {
					throw new ConnectError("cut", Code.Unavailable);
				}
			}),
		);
		const { metrics } = alpha.current.constraints;
		for (const name of ["a", "b"]) {
			await lab.run(alpha.write(thing(name)));
			await lab.run(beta.write(widget(`w-${name}`, { belongsTo: to(name) }), "mine"));
		}
		await lab.pass(60_000);
		isCut = true;
		await lab.run(alpha.write(thing("c")));
		await lab.run(beta.write(widget("w-c", { belongsTo: to("c") })));
		await lab.pass(10_000);
		const { waiting, sources } = metrics();
		expect(sources).toEqual({ confirmed: 2, tentative: 1 });
		expect(waiting.pending.count).toBe(1);
		expect(waiting.pending.oldestMs).toBeGreaterThanOrEqual(10_000);

		isCut = false;
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(5_000);
		await lab.run(alpha.delete(alpha.id(Thing, "b")));
		isCut = true;
		await lab.pass(60_000);
		const later = metrics();
		expect(later.waiting.deleting.count).toBe(2);
		expect(later.cascades).toBe(2);
		expect(later.waiting.deleting.oldestMs).toBeGreaterThanOrEqual(65_000);
		expect(later.waiting.deleting.oldestMs).toBeLessThan(80_000);
		const [beta1] = later.holderQueries;
		expect(beta1?.failed).toBeGreaterThan(0);
		expect(beta1?.failed).toBeLessThan(beta1?.sent ?? 0);
		expect(await beta.read(beta.id(Widget, "w-b"))).toBeDefined();
	});
});
