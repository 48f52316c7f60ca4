import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ID, OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { referenceTo } from "@plinth/resource";
import { createMemoryBackend, type Mutation, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { guardName } from "../guards.ts";
import { keyOf } from "../resource-key.ts";
import { newShadow } from "../shadow.ts";
import { putRecord, readShadow } from "../shadow-records.ts";
import { updateShadow } from "../shadow-update.ts";
import { Lab, make, type Wire } from "../testing/lab.fixture.ts";

type ThingInit = Parameters<typeof create<typeof ThingSchema>>[1];
type WidgetInit = Parameters<typeof create<typeof WidgetSchema>>[1];

const thing = (name: string, init: ThingInit = {}) => make(Thing, name, create(ThingSchema, init));
const widget = (name: string, init: WidgetInit = {}) =>
	make(Widget, name, create(WidgetSchema, init));
const to = (name: string) => ({ ...referenceTo({ type: Thing.type, name }), region: "" });

function idOf({ id }: Resource): ID {
	if (id === undefined) {
		throw new Error("a resource without an ID");
	}
	return id;
}

function ownedBy(resource: Resource, owner: ID, flags: { requiresOwnerReference?: boolean } = {}) {
	const { type, tenancy, name, uid } = owner;
	const reference = create(OwnerReferenceSchema, {
		name,
		uid,
		...(type && { type }),
		...(tenancy && { tenancy }),
		...flags,
	});
	return { ...resource, ownerReferences: [reference] };
}

async function alphaAndBeta(wire?: Wire, decorate?: (backend: StorageBackend) => StorageBackend) {
	const lab = new Lab(1, {}, wire);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{ name: "beta", service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] },
		decorate,
	);
	return { lab, alpha, beta };
}

async function versionOf(backend: StorageBackend): Promise<number> {
	return Number(await backend.catchUp(new AbortController().signal));
}

describe("what waits", () => {
	it("tries again at a pace where others block an ownee whose owner is gone", async () => {
		const { lab, alpha } = await alphaAndBeta();
		const owner = idOf(await lab.run(alpha.write(thing("owner"))));
		await lab.run(alpha.write(ownedBy(thing("ownee"), owner)));
		await lab.run(alpha.write(thing("blocker", { needs: to("ownee") })));
		await lab.pass(5_000);
		await lab.run(alpha.delete(alpha.id(Thing, "owner")));
		await lab.pass(60_000);
		const before = await versionOf(alpha.backend);
		await lab.pass(60_000);
		expect(await alpha.read(alpha.id(Thing, "ownee"))).toBeDefined();
		expect((await versionOf(alpha.backend)) - before).toBeLessThan(100);
	});

	it("asks at a pace where answers alternate", async () => {
		let calls = 0;
		const wire: Wire = (transport) => ({
			unary: (method, ...rest) => {
				calls += Number(method.name === "CheckReferences");
				if (method.name === "CheckReferences" && calls % 2 === 0) {
					throw new ConnectError("lost", Code.Unavailable);
				}
				return transport.unary(method, ...rest);
			},
			stream: (...call) => transport.stream(...call),
		});
		const { lab, alpha, beta } = await alphaAndBeta(wire);
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { belongsTo: to("a") }), "user/holds"));
		await lab.pass(5_000);
		calls = 0;
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(60_000);
		expect((await alpha.shadow(alpha.id(Thing, "a")))?.lifecycle).toBe(Lifecycle.DELETING);
		expect(calls).toBeGreaterThan(10);
		expect(calls).toBeLessThan(100);
	});
});

describe("an owner that must reference its ownee", () => {
	it("loses it when it is saved without, though nobody is told", async () => {
		const { lab, alpha } = await alphaAndBeta();
		const owner = idOf(await lab.run(alpha.write(thing("owner"))));
		const flags = { requiresOwnerReference: true };
		await lab.run(alpha.write(ownedBy(thing("ownee"), owner, flags)));
		await lab.run(alpha.write(thing("owner", { likes: [to("ownee")] })));
		await lab.pass(120_000);
		expect(await alpha.read(alpha.id(Thing, "ownee"))).toBeDefined();
		await lab.run(alpha.write(thing("owner")));
		await lab.pass(300_000);
		expect(await alpha.read(alpha.id(Thing, "ownee"))).toBeUndefined();
	});
});

describe("a write with several foreign targets", () => {
	it("depends on the guards of all of them, the first time too", async () => {
		const commits: (readonly Mutation[])[] = [];
		const decorate = (backend: StorageBackend): StorageBackend => ({
			...backend,
			commit: (mutations, options) => {
				commits.push(mutations);
				return backend.commit(mutations, options);
			},
		});
		const { lab, alpha, beta } = await alphaAndBeta(undefined, decorate);
		const guards = new Set(
			["a", "b"].map((name) => guardName(lab.keyOf(alpha, idOf(thing(name))))),
		);
		expect(guards.size).toBe(2);
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("b")));
		commits.length = 0;
		await lab.run(beta.write(widget("w", { needs: to("a"), likes: [to("b")] })));
		const names = (mutations: readonly Mutation[]) =>
			mutations.map((each) => (each.op === "put" ? each.resource.id : each.id)?.name ?? "");
		const write = commits.map(names).find((all) => all.includes("w")) ?? [];
		expect(write.filter((name) => guards.has(name)).sort()).toEqual([...guards].sort());
	});
});

describe("a change of a shadow", () => {
	it("reads strongly after a conflict, where the server hears of others late", async () => {
		const { runtime } = new Lab(1);
		const memory = createMemoryBackend({ runtime });
		const key = keyOf(idOf(thing("a")), "");
		const shadow = newShadow(key, "01A");
		await memory.commit([putRecord(runtime, "s-a", undefined, { case: "shadow", value: shadow })]);
		const old = await readShadow(memory, "s-a");
		const next = { ...shadow, uid: "01B" };
		await memory.commit([
			putRecord(runtime, "s-a", old?.resource, { case: "shadow", value: next }),
		]);
		const late: StorageBackend = {
			...memory,
			read: async (id, options) =>
				options?.consistency === "strong" || old === undefined
					? memory.read(id, options)
					: old.resource,
		};
		const seen: string[] = [];
		await updateShadow({ backend: late, runtime }, "s-a", (stored) => {
			seen.push(stored.shadow.uid);
			return { ...stored.shadow, uid: `${stored.shadow.uid}!`, lifecycle: Lifecycle.DELETING };
		});
		expect(seen).toEqual(["01A", "01B"]);
		expect((await readShadow(memory, "s-a"))?.shadow.uid).toBe("01B!");
	});
});
