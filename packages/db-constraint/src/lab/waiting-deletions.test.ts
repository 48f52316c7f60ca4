import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { OwnerReferenceSchema } from "@plinth/proto";
import { isMarkedForDeletion, referenceTo, tenancyOf } from "@plinth/resource";
import { type Clock, sleep } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Lab } from "./lab.fixture.ts";
import { hooked, oneDeployment, thing, to, twoDeployments, widget } from "./things.fixture.ts";

/** A service of things in three regions. */
async function threeRegions(
	decorateTransport?: ConstructorParameters<typeof Lab>[2],
	limits?: ConstructorParameters<typeof Lab>[1],
) {
	const lab = new Lab(1, limits, decorateTransport);
	const add = (region: string) =>
		lab.add({ name: `alpha-${region}`, service: "alpha", region, types: [Thing] });
	return { lab, first: await add("r1"), second: await add("r2"), third: await add("r3") };
}

describe("deletions that wait", () => {
	it("do not wait for confirmations of the resource itself", async () => {
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				if (method === "ConfirmBlockades") {
					throw new ConnectError("lost", Code.Unavailable);
				}
			}),
		);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		const next = referenceTo({ type: Widget.type, name: "w" });
		await lab.run(beta.write(widget("v", { next })));
		await lab.run(beta.delete(beta.id(Widget, "w")));
		await lab.pass(10_000);
		expect(await beta.read(beta.id(Widget, "v"))).toBeUndefined();
		expect(await beta.read(beta.id(Widget, "w"))).toBeUndefined();
	});

	it("are applied while a reference of a resource with the name of their target can't be confirmed", async () => {
		const { lab, first, second, third } = await threeRegions();
		await lab.run(first.write(thing("x")));
		await lab.run(third.write(thing("t")));
		await lab.run(second.write(thing("part", { belongsTo: to("x", "r1") })));
		await lab.pass(5_000);
		await lab.run(second.write(thing("x", { needs: to("t", "r3") })));
		third.crash();
		await lab.run(first.delete(first.id(Thing, "x")));
		await lab.pass(300_000);
		expect((await second.shadow(second.id(Thing, "x")))?.tasks).toHaveLength(1);
		expect(await second.read(second.id(Thing, "part"))).toBeUndefined();
		expect(await first.read(first.id(Thing, "x"))).toBeUndefined();
	});

	it("are applied in many pages while a reference of a resource with the name of their target can't be confirmed", async () => {
		const losing = hooked(async (method) => {
			if (method === "ConfirmBlockades") {
				throw new ConnectError("lost", Code.Unavailable);
			}
		});
		const { lab, first, second, third } = await threeRegions(losing, { pageSize: 2 });
		await lab.run(first.write(thing("x")));
		await lab.run(third.write(thing("t")));
		await lab.run(second.write(thing("x", { needs: to("t", "r3") })));
		const parts = Array.from({ length: 40 }, (_, index) => `part-${index}`);
		for (const part of parts) {
			await lab.run(second.write(thing(part, { belongsTo: to("x", "r1") }), "mine"));
		}
		await lab.run(first.delete(first.id(Thing, "x")));
		await lab.pass(5_000);
		const left = await Promise.all(parts.map((part) => second.read(second.id(Thing, part))));
		expect(left.filter((each) => each && isMarkedForDeletion(each))).toHaveLength(40);
	});

	it("cascade past resources that wait", async () => {
		const { lab, alpha, id } = await oneDeployment({ pageSize: 2 });
		await lab.run(alpha.write(thing("t")));
		for (const name of ["r1", "r2", "r3"]) {
			await lab.run(alpha.write(thing(name, { belongsTo: to("t") })));
		}
		for (const name of ["r1", "r2"]) {
			await lab.run(alpha.write(thing(name, { belongsTo: to("t") }), "mine"));
		}
		await lab.run(alpha.delete(id("t")));
		await lab.pass(60_000);
		expect(await alpha.read(id("t"))).toBeDefined();
		expect(await alpha.read(id("r3"))).toBeUndefined();
	});

	it("cascade to very many resources in pages", async () => {
		const { lab, alpha, id } = await oneDeployment({ pageSize: 10 });
		await lab.run(alpha.write(thing("t")));
		for (let i = 0; i < 500; i++) {
			await lab.run(alpha.write(thing(`r-${i}`, { belongsTo: to("t") })));
		}
		await lab.run(alpha.delete(id("t")));
		await lab.pass(10_000);
		expect(await alpha.read(id("t"))).toBeUndefined();
	});

	it("finish at the memory limit", async () => {
		const { lab, alpha, beta } = await twoDeployments(undefined, ({ runtime }) =>
			createMemoryBackend({ runtime, limits: { memoryBytes: 150_000 } }),
		);
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("b")));
		await lab.run(alpha.write(thing("user", { likes: [to("a"), to("b")] })));
		await lab.run(beta.write(widget("w", { likes: [to("a"), to("b")] })));
		await lab.pass(5_000);
		for (const deployment of [alpha, beta]) {
			for (let i = 0, size = 20_000; size >= 1; i++) {
				try {
					const note = "x".repeat(size);
					const data =
						deployment === alpha ? thing(`f-${i}`, { note }) : widget(`f-${i}`, { note });
					await lab.run(deployment.write(data));
				} catch {
					size = Math.floor(size / 2);
				}
			}
		}
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(300_000);
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
	});

	it("of many targets that one resource references clear it one after the other, without growing pauses", async () => {
		const targets = Array.from({ length: 80 }, (_, i) => `t-${i}`);
		let clock: Clock | undefined;
		const { lab, alpha, id } = await oneDeployment({}, (backend) =>
			decorateBackend(backend, {
				commit: async (...args) => {
					await (clock && sleep(clock, 20));
					return backend.commit(...args);
				},
			}),
		);
		for (const name of targets) {
			await lab.run(alpha.write(thing(name)));
		}
		for (const count of [40, 80]) {
			const likes = targets.slice(0, count).map((name) => to(name));
			await lab.run(alpha.write(thing("hub", { likes })));
		}
		await lab.pass(1_000);
		clock = lab.runtime.clock;
		await lab.run(Promise.all(targets.map((name) => alpha.delete(id(name)))));
		await lab.pass(5_000);
		const left = await Promise.all(targets.map((name) => alpha.read(id(name))));
		expect(left.filter((each) => each !== undefined)).toEqual([]);
	});

	it("do not hold up others, however many they are", async () => {
		const { lab, alpha, id } = await oneDeployment({ deletionsPerDeployment: 20 });
		await lab.run(alpha.write(thing("last")));
		await lab.run(alpha.write(thing("fan", { likes: [to("last")] })));
		for (let i = 0; i < 30; i++) {
			await lab.run(alpha.write(thing(`t-${i}`)));
			await lab.run(alpha.write(thing(`part-${i}`, { belongsTo: to(`t-${i}`) })));
			await lab.run(alpha.write(thing(`other-${i}`, { needs: to(`part-${i}`) })));
		}
		for (let i = 0; i < 30; i++) {
			await lab.run(alpha.delete(id(`t-${i}`)));
		}
		await lab.pass(10_000);
		await lab.run(alpha.delete(id("last")));
		await lab.pass(60_000);
		expect(await alpha.read(id("part-0"))).toBeDefined();
		expect(await alpha.read(id("last"))).toBeUndefined();
	});

	it("do not change guards, which would fail writes", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") })));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") }), "mine"));
		await lab.pass(1_000);
		await lab.run(alpha.delete(a));
		await lab.pass(10_000);
		const before = await beta.backend.catchUp(new AbortController().signal);
		await lab.pass(60_000);
		expect(await beta.backend.catchUp(new AbortController().signal)).toBe(before);
	});

	it("are told when they may continue, and query rarely until then", async () => {
		let queries = 0;
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				queries += method === "CheckReferences" ? 1 : 0;
			}),
		);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") }), "mine"));
		await lab.pass(1_000);
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(600_000);
		expect(queries).toBeLessThan(30);
		await lab.run(beta.write(widget("w"), "mine"));
		await lab.pass(1_000);
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
	});

	it("are not tried with each change of a resource that has the name of their target", async () => {
		let queries = 0;
		const { lab, first, second, third } = await threeRegions(
			hooked(async (method) => {
				queries += method === "CheckReferences" ? 1 : 0;
			}),
		);
		await lab.run(first.write(thing("x")));
		await lab.run(second.write(thing("u")));
		await lab.run(second.write(thing("part", { belongsTo: to("x", "r1") })));
		await lab.run(third.write(thing("w", { needs: to("part", "r2") })));
		await lab.pass(1_000);
		await lab.run(first.delete(first.id(Thing, "x")));
		await lab.pass(600_000);
		queries = 0;
		for (let i = 0; i < 50; i++) {
			await lab.run(second.write(thing("x", i % 2 === 0 ? { needs: to("u", "r2") } : {})));
			await lab.pass(200);
		}
		expect(await second.read(second.id(Thing, "part"))).toBeDefined();
		expect(queries).toBeLessThan(15);
	});

	it("continue when what blocks a cascade is removed, of the same deployment and of others", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("part", { belongsTo: to("a") })));
		await lab.run(alpha.write(thing("other", { needs: to("part") })));
		await lab.run(beta.write(widget("w", { needs: to("part") })));
		await lab.pass(1_000);
		await lab.run(alpha.delete(a));
		await lab.pass(600_000);
		expect(await alpha.read(alpha.id(Thing, "part"))).toBeDefined();
		await lab.run(alpha.delete(alpha.id(Thing, "other")));
		await lab.pass(1_000);
		expect(await alpha.read(a)).toBeDefined();
		await lab.run(beta.delete(beta.id(Widget, "w")));
		await lab.pass(1_000);
		expect(await alpha.read(alpha.id(Thing, "part"))).toBeUndefined();
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("query a deployment again as soon as it is back", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { likes: [to("a")] })));
		await lab.pass(1_000);
		await lab.run(alpha.delete(a));
		beta.crash();
		await lab.pass(600_000);
		expect(await alpha.read(a)).toBeDefined();
		await lab.run(beta.start());
		await lab.pass(1_000);
		expect(await alpha.read(a)).toBeUndefined();
	});

	it("for lack of owners, that are blocked, are tried with growing pauses, and soon after the block has ended", async () => {
		let checks = 0;
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				checks += method === "CheckReferences" ? 1 : 0;
			}),
		);
		const lost = create(OwnerReferenceSchema, {
			...{ type: { ...Thing.type }, name: "gone", uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" },
			...{ tenancy: tenancyOf({ partition: "default", namespace: "default" }), region: "r1" },
		});
		const orphan = (name: string) => ({ ...thing(name), ownerReferences: [lost] });
		await lab.run(alpha.write(orphan("far")));
		await lab.run(alpha.write(orphan("near")));
		await lab.run(beta.write(widget("w", { needs: to("far") })));
		await lab.run(alpha.write(thing("t", { needs: to("near") })));
		await lab.pass(300_000);
		checks = 0;
		await lab.pass(600_000);
		expect(checks).toBeGreaterThan(0);
		expect(checks).toBeLessThan(25);
		await lab.run(beta.delete(beta.id(Widget, "w")));
		await lab.run(alpha.delete(alpha.id(Thing, "t")));
		await lab.pass(5_000);
		expect(await alpha.read(alpha.id(Thing, "far"))).toBeUndefined();
		expect(await alpha.read(alpha.id(Thing, "near"))).toBeUndefined();
	});
});
