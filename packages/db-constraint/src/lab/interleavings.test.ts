import { referenceTo } from "@plinth/resource";
import { deletionWithTombstone } from "@plinth/resource-service";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { referencesFinalizer } from "../shadow/shadow.ts";
import { Lab } from "./lab.fixture.ts";
import { hooked, oneDeployment, thing, to, twoDeployments, widget } from "./things.fixture.ts";

describe("concurrent writes and deletions", () => {
	it("never reference a deleted incarnation", async () => {
		let hook: (() => Promise<void>) | undefined;
		const { lab, alpha, id } = await oneDeployment({}, (backend) =>
			decorateBackend(backend, {
				async lookup(requested, options) {
					try {
						return await backend.lookup(requested, options);
					} finally {
						if (requested.name === "a" && hook !== undefined) {
							const run = hook;
							hook = undefined;
							await run();
						}
					}
				},
			}),
		);
		await lab.run(alpha.write(thing("a")));
		hook = async () => {
			await alpha.delete(id("a"));
			await alpha.write(thing("a"));
			await alpha.write(thing("other", { needs: to("a") }));
		};
		await lab.run(alpha.write(thing("user", { needs: to("a") })));
		const uid = (await alpha.read(id("a")))?.id?.uid;
		expect((await alpha.shadow(id("user")))?.outgoing[0]?.targetUid).toBe(uid);
	});

	it("do not fail the check of a deletion by confirmations", async () => {
		const confirming = Promise.withResolvers<void>();
		let asked = false;
		const lab: Lab = new Lab(
			1,
			{},
			hooked(async (method) => {
				if (method === "ConfirmBlockades" && !asked) {
					await confirming.promise;
				}
				if (method === "CheckReferences") {
					asked = true;
					confirming.resolve();
					for (let i = 0; i < 50; i++) {
						await lab.runtime.scheduler.pause();
					}
				}
			}),
		);
		const spec = { service: "beta", types: [Widget], foreignTypes: [Thing] };
		const alpha = await lab.add({ name: "a", service: "alpha", region: "r1", types: [Thing] });
		const beta1 = await lab.add({ ...spec, name: "b1", region: "r1" });
		const beta2 = await lab.add({ ...spec, name: "b2", region: "r2" });
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta1.write(widget("w", { needs: to("a") })));
		const next = { ...referenceTo({ type: Widget.type, name: "w" }), region: "r1" };
		await lab.run(beta2.write(widget("v", { next })));
		await lab.pass(100);
		await lab.run(beta1.delete(beta1.id(Widget, "w")));
		await lab.pass(10_000);
		expect(await beta1.read(beta1.id(Widget, "w"))).toBeUndefined();
	});

	it("allow writes without new references while a deletion is checked", async () => {
		let during: (() => Promise<unknown>) | undefined;
		const outcomes: unknown[] = [];
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				if (method === "CheckReferences" && during !== undefined) {
					const run = during;
					during = undefined;
					outcomes.push(await run().catch((failure: unknown) => failure));
				}
			}),
		);
		await lab.run(alpha.write(thing("b")));
		await lab.run(alpha.write(thing("a", { needs: to("b") })));
		await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(1_000);
		during = () => alpha.write(thing("a", { needs: to("b"), note: "changed" }));
		await expect(lab.run(alpha.delete(alpha.id(Thing, "a")))).rejects.toThrow();
		expect(outcomes).toMatchObject([{ id: { name: "a" } }]);
	});

	it("allow many writers that reference one target", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		await lab.run(alpha.write(thing("a")));
		const writes = Array.from({ length: 100 }, (_, i) =>
			beta.write(widget(`w-${i}`, { needs: to("a") })),
		);
		const results = await lab.run(Promise.allSettled(writes));
		const failed = results.filter(({ status }) => status === "rejected");
		expect(failed).toEqual([]);
	});

	it("change and establish nothing in dry runs", async () => {
		const calls: string[] = [];
		const { lab, alpha, beta } = await twoDeployments(
			hooked(async (method) => {
				calls.push(method);
			}),
		);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") })));
		await lab.pass(10_000);
		const versions = () =>
			Promise.all(
				[alpha, beta].map(({ backend }) => backend.catchUp(new AbortController().signal)),
			);
		const before = await versions();
		calls.length = 0;
		const v = widget("v", { needs: to("a") });
		await lab.run(
			beta.store.commit(
				[{ op: "put", resource: { ...v, id: { ...lab.idOf(v), uid: "u" } }, expectedVersion: "" }],
				{ dryRun: true },
			),
		);
		const a = await alpha.read(alpha.id(Thing, "a"));
		const id = a?.id;
		if (a === undefined || id === undefined) {
			throw new Error("the target does not exist");
		}
		expect(calls).toEqual([]);
		await lab.run(
			alpha.store.commit([{ op: "delete", id, expectedVersion: a.version }], {
				dryRun: true,
			}),
		);
		await lab.pass(10_000);
		expect(calls).toEqual(["CheckReferences"]);
		expect(await versions()).toEqual(before);
	});

	it("establish many foreign targets in one commit", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const names = Array.from({ length: 80 }, (_, i) => `t-${i}`);
		for (const name of names) {
			await lab.run(alpha.write(thing(name)));
		}
		await lab.run(beta.write(widget("w", { likes: names.map((name) => to(name)) })));
		expect((await beta.shadow(beta.id(Widget, "w")))?.outgoing).toHaveLength(80);
	});

	it("ignore the deletion of another incarnation, like a storage", async () => {
		const { lab, alpha, id } = await oneDeployment();
		const { version } = await lab.run(alpha.write(thing("a")));
		const other = { ...id("a"), uid: "another" };
		const commit = alpha.store.commit([{ op: "delete", id: other, expectedVersion: version }]);
		expect((await lab.run(commit)).version).toBe("");
		expect(await alpha.read(id("a"))).toBeDefined();
	});

	it("keep a resource that may be referenced when its last finalizer is removed", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a"), "mine"));
		await lab.run(beta.write(widget("w", { likes: [to("a")] })));
		await lab.pass(1_000);
		beta.crash();
		await expect(lab.run(alpha.delete(a))).rejects.toThrow("can't be queried");
		await lab.run(beta.start());
		await lab.run(alpha.delete(a));
		beta.crash();
		const stored = await alpha.read(a);
		if (stored === undefined) {
			throw new Error("the resource does not exist");
		}
		await lab.run(alpha.store.commit(deletionWithTombstone(lab.runtime, stored)));
		expect((await alpha.read(a))?.metadata).toMatchObject({ finalizers: referencesFinalizer });
		await lab.run(beta.start());
		await lab.pass(60_000);
		expect(await alpha.read(a)).toBeUndefined();
	});
});
