import { create } from "@bufbuild/protobuf";
import { newUlid, referenceTo } from "@plinth/resource";
import {
	createMemoryBackend,
	decorateBackend,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { statusKey } from "../controller/reported-status.ts";
import { Lab, make } from "../lab/lab.fixture.ts";
import { shadowName } from "../shadow/shadow.ts";
import { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord, recordId } from "../shadow/shadow-records.ts";
import { SchemaPass } from "./schema-pass.ts";
import { ServiceDescriptor } from "./service-descriptor.ts";

type Init = Parameters<typeof create<typeof ThingSchema>>[1];

const to = (name: string) => referenceTo({ type: Thing.type, name });

/** A deployment whose storage is older than its schema of references. */
async function olderStorage(
	resources: Readonly<Record<string, Init>>,
	decorate = (backend: StorageBackend) => backend,
) {
	const lab = new Lab(1);
	const backend = createMemoryBackend({ runtime: lab.runtime });
	for (const [name, init] of Object.entries(resources)) {
		const resource = make(Thing, name, create(ThingSchema, init));
		const id = { ...lab.idOf(resource), uid: newUlid(lab.runtime) };
		await backend.commit([
			{
				op: "put",
				resource: { ...resource, id, generation: newUlid(lab.runtime) },
				expectedVersion: "",
			},
		]);
	}
	const spec = { name: "alpha", service: "alpha", region: "", types: [Thing] };
	const alpha = await lab
		.add(spec, () => decorate(backend))
		.catch(() => lab.deployments.get("alpha"));
	if (alpha === undefined) {
		throw new Error("the deployment does not exist");
	}
	return { lab, alpha, id: (name: string) => alpha.id(Thing, name) };
}

describe("a schema of references that becomes active over existing resources", () => {
	it("records their references without changing the resources", async () => {
		const { lab, alpha, id } = await olderStorage({ a: {}, user: { needs: to("a") } });
		const before = await alpha.read(id("user"));
		await expect(lab.run(alpha.delete(id("a")))).rejects.toThrow("it is referenced by");
		expect(await alpha.read(id("user"))).toEqual(before);
	});

	it("reports missing targets, and looks them up again", async () => {
		const { lab, alpha, id } = await olderStorage({
			user: { needs: to("late"), likes: [to("user")] },
		});
		const condition = async () => (await alpha.read(id("user")))?.status[statusKey]?.conditions[0];
		expect(await condition()).toMatchObject({
			type: "ReferencesResolved",
			state: 2,
			message: "missing: needs: alpha.Thing default/default/late",
		});
		await lab.run(alpha.write(make(Thing, "late", create(ThingSchema))));
		await lab.pass(60_000);
		expect(await condition()).toMatchObject({ type: "ReferencesResolved", state: 1 });
		await expect(lab.run(alpha.delete(id("late")))).rejects.toThrow("it is referenced by");
		expect(alpha.failures).toEqual([]);
	});

	it("resumes after an interruption", async () => {
		const names = Array.from({ length: 250 }, (_, i) => `t-${i}`);
		const users = Object.fromEntries(names.map((name) => [name, { needs: to("a") }]));
		let commits = 0;
		let failsAt = 180;
		const { lab, alpha, id } = await olderStorage({ a: {}, ...users }, (backend) =>
			decorateBackend(backend, {
				commit: (mutations, options) => {
					commits += 1;
					return commits === failsAt
						? Promise.reject(new StorageUnavailable("the storage is unavailable"))
						: backend.commit(mutations, options);
				},
			}),
		);
		expect(alpha.running).toBeUndefined();
		expect(commits).toBe(180);
		failsAt = 0;
		commits = 0;
		await lab.run(alpha.start());
		expect(commits).toBeLessThan(200);
		for (const name of names) {
			expect((await alpha.shadow(id(name)))?.outgoing).toHaveLength(1);
		}
	});

	it("derives again what another schema has written while a server was stalled in its pass", async () => {
		let stall: (() => Promise<void>) | undefined;
		const { lab, alpha, id } = await olderStorage({ a: {}, user: { needs: to("a") } }, (backend) =>
			decorateBackend(backend, {
				async commit(mutations, options) {
					const result = await backend.commit(mutations, options);
					const isUser = (name: string | undefined) => name === "user";
					if (stall && mutations.some((each) => each.op === "assert" && isUser(each.id.name))) {
						const during = stall;
						stall = undefined;
						await during();
					}
					return result;
				},
			}),
		);
		const running = alpha.current.constraints.context;
		alpha.crash();
		// The index of a server that follows nothing: its pass alone finds out what has happened.
		const index = new ShadowIndex(running.backend, lab.runtime, running.logger);
		const context = { ...running, index };
		const schemaPass = new SchemaPass(context);
		const descriptor = new ServiceDescriptor({ types: [], service: "other" });
		const other = new SchemaPass({ ...context, descriptor });
		await other.begin();
		await schemaPass.begin();
		stall = async () => {
			await other.begin();
			const shadow = await alpha.shadow(id("user"));
			const stored = await context.backend.lookup(
				recordId(shadowName(lab.keyOf(alpha, id("user")))),
			);
			if (shadow === undefined || stored === undefined) {
				throw new Error("the user has no shadow");
			}
			const value = { ...shadow, outgoing: [] };
			await context.backend.commit([
				putRecord(lab.runtime, stored.id?.name ?? "", stored, { case: "shadow", value }),
			]);
			await schemaPass.begin();
		};
		await lab.run(schemaPass.complete(new AbortController().signal));
		expect(stall).toBeUndefined();
		expect((await alpha.shadow(id("user")))?.outgoing).toHaveLength(1);
	});

	it("becomes active although a resource can't be decoded, which keeps its previous references", async () => {
		const { lab, alpha, id } = await olderStorage({ a: {}, b: {}, user: { needs: to("a") } });
		const user = await alpha.read(id("user"));
		if (user?.data === undefined) {
			throw new Error("the user does not exist");
		}
		// Stored by a program in whose type the first field was a number.
		const data = { ...user.data, value: Uint8Array.of(0x0a, 0x7f, 1) };
		const { context } = alpha.current.constraints;
		await context.backend.commit([
			{ op: "put", resource: { ...user, data }, expectedVersion: user.version },
		]);
		// Another schema and then this one again, so that all references are derived again.
		await new SchemaPass({
			...context,
			descriptor: new ServiceDescriptor({ types: [Thing], service: "older" }),
		}).begin();
		const { schemaPass } = alpha.current.constraints;
		await schemaPass.begin();
		await lab.run(schemaPass.complete(new AbortController().signal));
		expect((await alpha.shadow(id("user")))?.outgoing.map(({ path }) => path)).toEqual(["needs"]);
		await expect(lab.run(alpha.delete(id("a")))).rejects.toThrow("it is referenced by");

		// It can still be marked and deleted, which releases its target.
		await lab.run(alpha.delete(id("user")));
		await lab.pass(60_000);
		await lab.run(alpha.delete(id("a")));
		expect(await alpha.read(id("a"))).toBeUndefined();
		expect(alpha.failures).toEqual([]);
	});

	it("prevents code with another schema from writing", async () => {
		const { lab, alpha } = await olderStorage({});
		const old = alpha.withDescriptor(new ServiceDescriptor({ types: [Thing], service: "older" }));
		await expect(
			lab.run(
				old.commit([
					{ op: "put", resource: make(Thing, "x", create(ThingSchema)), expectedVersion: "" },
				]),
			),
		).rejects.toThrow("another schema of references is active");
	});
});
