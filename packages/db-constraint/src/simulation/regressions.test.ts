import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ID, OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { referenceTo } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import {
	CasFailure,
	createMemoryBackend,
	decorateBackend,
	type Mutation,
	type StorageBackend,
	StorageUnavailable,
} from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { guardName } from "../commit/guards.ts";
import { Lab, type LabDeployment, make, type TransportDecorator } from "../lab/lab.fixture.ts";
import { createConstraints } from "../node/constraints.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { newShadow, shadowName } from "../shadow/shadow.ts";
import { putRecord, readShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { type SimulatedSchema, schemasOf } from "./schemas.fixture.ts";

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

function nameOf(mutation: Mutation): string {
	return (mutation.op === "put" ? mutation.resource.id : mutation.id)?.name ?? "";
}

interface Flags {
	readonly requiresOwnerReference?: boolean;
	readonly unsetOnDelete?: boolean;
}

function ownedBy(resource: Resource, owner: ID, flags: Flags = {}) {
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

async function alphaAndBeta(
	decorateTransport?: TransportDecorator,
	decorate?: (backend: StorageBackend) => StorageBackend,
) {
	const lab = new Lab(1, {}, decorateTransport);
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

describe("waiting work", () => {
	it("gives up a deleted owner although others keep referencing the ownee", async () => {
		const decorateTransport: TransportDecorator = (transport) => ({
			unary: async (method, ...rest) => {
				if (method.name === "CheckMetaOwners") {
					await sleep(lab.runtime.clock, 500);
				}
				return transport.unary(method, ...rest);
			},
			stream: (...call) => transport.stream(...call),
		});
		const { lab, alpha, beta } = await alphaAndBeta(decorateTransport);
		const owner = idOf(await lab.run(beta.write(widget("owner"))));
		const ownee = ownedBy(thing("ownee"), owner, { unsetOnDelete: true });
		await lab.run(alpha.write(ownee));
		await lab.pass(5_000);
		await lab.run(beta.delete(owner));
		for (let at = 0; at < 500; at++) {
			await lab.run(beta.write(widget(`w${at}`, { likes: [to("ownee")] })));
			await lab.pass(200);
		}
		expect((await alpha.read(idOf(ownee)))?.ownerReferences).toEqual([]);
	});

	it("retries with a pause if others block an ownee whose owner was deleted", async () => {
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

	it("retries a cascade with a pause if others block the resource, which has the name of its target", async () => {
		const { lab, alpha } = await alphaAndBeta();
		const far = await lab.add({ name: "far", service: "alpha", region: "r2", types: [Thing] });
		await lab.run(far.write(thing("a")));
		const belongsTo = { ...to("a"), region: "r2" };
		await lab.run(alpha.write(thing("a", { belongsTo })));
		await lab.run(alpha.write(thing("blocker", { needs: to("a") })));
		await lab.pass(5_000);
		await lab.run(far.delete(far.id(Thing, "a")));
		await lab.pass(60_000);
		const before = await versionOf(alpha.backend);
		await lab.pass(60_000);
		// Each attempt changes the shadow twice, and there is one in two seconds.
		expect((await versionOf(alpha.backend)) - before).toBeLessThan(2 * 31);
		await lab.run(alpha.delete(alpha.id(Thing, "blocker")));
		await lab.pass(5_000);
		expect(await alpha.read(alpha.id(Thing, "a"))).toBeUndefined();
		expect(await far.read(far.id(Thing, "a"))).toBeUndefined();
	});

	it("queries with a pause if responses alternate", async () => {
		let calls = 0;
		const decorateTransport: TransportDecorator = (transport) => ({
			unary: (method, ...rest) => {
				calls += Number(method.name === "CheckReferences");
				if (method.name === "CheckReferences" && calls % 2 === 0) {
					throw new ConnectError("lost", Code.Unavailable);
				}
				return transport.unary(method, ...rest);
			},
			stream: (...call) => transport.stream(...call),
		});
		const { lab, alpha, beta } = await alphaAndBeta(decorateTransport);
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
	it("loses the ownee when it is saved without the reference, although no deployment is notified", async () => {
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

/**
 * `ownee`, whose owner must reference it, and does not. The last query is due 30 s after the first one.
 *
 * @param meanwhile - a write after that query, before its pass reads the ownee.
 */
async function afterLastQuery(meanwhile: (alpha: LabDeployment, owner: ID) => Promise<unknown>) {
	const lab = new Lab(1);
	let isAsked = false;
	let next: (() => Promise<unknown>) | undefined;
	const spec = { name: "alpha", service: "alpha", region: "r1", types: [Thing] };
	const alpha = await lab.add(spec, (backend) =>
		decorateBackend(backend, {
			commit: (mutations, options) => {
				// The query changes the guard of the ownee.
				isAsked ||=
					lab.runtime.clock.monotonic() > 29_900 &&
					mutations.some((each) => each.op === "put" && each.resource.id?.name.startsWith("guard"));
				return backend.commit(mutations, options);
			},
			lookup: async (id, options) => {
				const now = id.name === "ownee" && isAsked ? next : undefined;
				if (now !== undefined) {
					next = undefined;
					await now();
					commits.mockClear();
				}
				return backend.lookup(id, options);
			},
		}),
	);
	const owner = idOf(await lab.run(alpha.write(thing("owner"))));
	await lab.run(alpha.write(ownedBy(thing("ownee"), owner, { requiresOwnerReference: true })));
	// This deployment is a source already: another reference from it leaves the ownee's shadow as it is.
	await lab.run(alpha.write(thing("other", { likes: [to("ownee")] })));
	/** What this server commits after that write, also what fails. */
	const commits = vi.spyOn(alpha.store, "commit");
	next = () => meanwhile(alpha, owner);
	await lab.pass(120_000);
	expect(next).toBeUndefined();
	expect(alpha.failures).toEqual([]);
	const changed = commits.mock.calls.flatMap(([mutations]) => mutations.map(nameOf));
	return { alpha, ownee: alpha.id(Thing, "ownee"), changed };
}

describe("an ownee that its owner must reference", () => {
	it("stays if its owner is saved with the reference after the last query", async () => {
		const { alpha, ownee } = await afterLastQuery((alpha) =>
			alpha.write(thing("owner", { likes: [to("ownee")] })),
		);
		expect(await alpha.read(ownee)).toBeDefined();
	});

	it("stays if it is saved without its owner after the last query", async () => {
		const { alpha, ownee, changed } = await afterLastQuery((alpha) => alpha.write(thing("ownee")));
		expect(await alpha.read(ownee)).toMatchObject({ ownerReferences: [] });
		expect(changed).not.toContain("ownee");
	});

	it("is not deleted once more if it is deleted after the last query", async () => {
		const { alpha, ownee, changed } = await afterLastQuery(async (alpha) => {
			await alpha.write(thing("other"));
			await alpha.delete(alpha.id(Thing, "ownee"));
		});
		expect(await alpha.read(ownee)).toBeUndefined();
		expect(changed).not.toContain("ownee");
	});

	it("stays if it is deleted and created again after the last query", async () => {
		const { alpha, ownee, changed } = await afterLastQuery(async (alpha, owner) => {
			await alpha.write(thing("other"));
			await alpha.delete(alpha.id(Thing, "ownee"));
			await alpha.write(ownedBy(thing("ownee"), owner));
		});
		expect((await alpha.read(ownee))?.ownerReferences).toHaveLength(1);
		expect(changed).not.toContain("ownee");
	});
});

describe("an ownee that its owner must reference, and does until it is deleted", () => {
	it("is deleted while the owner still waits and references it", async () => {
		const { lab, alpha } = await alphaAndBeta();
		const owner = idOf(await lab.run(alpha.write(thing("owner"), "user/holds")));
		await lab.run(alpha.write(ownedBy(thing("ownee"), owner, { requiresOwnerReference: true })));
		await lab.run(alpha.write(thing("owner", { likes: [to("ownee")] })));
		await lab.pass(60_000);
		expect(await alpha.read(alpha.id(Thing, "ownee"))).toBeDefined();
		await lab.run(alpha.delete(owner));
		await lab.pass(120_000);
		expect(await alpha.read(owner)).toBeDefined();
		expect(await alpha.read(alpha.id(Thing, "ownee"))).toBeUndefined();
	});
});

describe("a schema that becomes active", () => {
	it("waits for a deployment that is missing from the registry view, if its resources are already referenced", async () => {
		const [first, , strict] = schemasOf("beta");
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const spec = { name: "beta", service: "beta", region: "r1", foreignTypes: [Thing] };
		const beta = await lab.add({ ...spec, types: [first.type] });
		await lab.run(alpha.write(thing("a")));
		const data = create(first.type.schema, { needs: to("a") });
		await lab.run(beta.write(make(first.type, "w", data)));
		const outgoing = async () => (await beta.shadow(beta.id(first.type, "w")))?.outgoing;
		const before = await outgoing();
		expect(before).toMatchObject([{ rule: OnDelete.BLOCK }]);
		beta.crash();
		Object.assign(beta.spec, { types: [strict.type] });
		lab.deployments.delete("alpha");
		await expect(lab.run(beta.start())).rejects.toThrow("whose deployment is currently unknown");
		expect(await outgoing()).toEqual(before);
		lab.deployments.set("alpha", alpha);
		await lab.run(beta.start());
		expect(await outgoing()).toMatchObject([
			{ rule: OnDelete.CASCADE, targetUid: before?.[0]?.targetUid },
		]);
	});

	it("stays active if a delayed commit of a crashed server with another schema arrives", async () => {
		const [first, lenient] = schemasOf("alpha");
		const { runtime } = new Lab(1);
		const memory = createMemoryBackend({ runtime });
		const serverOf = ({ descriptor }: SimulatedSchema, backend: StorageBackend) =>
			createConstraints({ backend, descriptor, environment: localEnvironment("01A"), runtime });
		await serverOf(first, memory).schemaPass.begin();
		let applyLater = async () => {};
		const dying: StorageBackend = decorateBackend(memory, {
			commit: async (mutations) => {
				applyLater = async () => void (await memory.commit(mutations));
				throw new StorageUnavailable("whether the commit was applied is not known");
			},
		});
		await expect(serverOf(lenient, dying).schemaPass.begin()).rejects.toThrow("is not known");
		await serverOf(first, memory).schemaPass.begin();
		await expect(applyLater()).rejects.toBeInstanceOf(CasFailure);
	});
});

describe("references to a deleted deployment", () => {
	it("do not prevent a schema from becoming active, although their target was being deleted", async () => {
		const [first, lenient, strict] = schemasOf("beta");
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const spec = { name: "beta", service: "beta", region: "r1", foreignTypes: [Thing] };
		const beta = await lab.add({ ...spec, types: [strict.type] });
		await lab.run(alpha.write(thing("a")));
		const data = create(strict.type.schema, { needs: to("a") });
		await lab.run(beta.write(make(strict.type, "w", data), "user/holds"));
		const outgoing = async () => (await beta.shadow(beta.id(strict.type, "w")))?.outgoing;
		const before = await outgoing();
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(5_000);
		const switchTo = async ({ type }: SimulatedSchema) => {
			beta.crash();
			Object.assign(beta.spec, { types: [type] });
			await lab.run(beta.start());
		};
		await switchTo(first);
		const { targetUid, deploymentUid } = before?.[0] ?? {};
		expect(await outgoing()).toMatchObject([{ rule: OnDelete.BLOCK, targetUid, deploymentUid }]);
		lab.retire(alpha);
		await switchTo(lenient);
		expect((await outgoing()) ?? []).toMatchObject([{ rule: OnDelete.UNSET, deploymentUid }]);
	});

	it("do not prevent a successor from taking over", async () => {
		const { lab, alpha, beta } = await alphaAndBeta();
		await lab.run(alpha.write(thing("a")));
		const user = await lab.run(beta.write(widget("w", { needs: to("a") })));
		await lab.pass(5_000);
		const name = shadowName(lab.keyOf(beta, idOf(user)));
		const shadow = await readShadow(beta.backend, name);
		const after = await lab.succeed(beta, [user, ...(shadow ? [shadow.resource] : [])]);
		const establish = () => {
			const { context } = after.current.constraints;
			return lab.run(reestablishOwnReferences(context, new AbortController().signal));
		};
		lab.deployments.delete("alpha");
		await expect(establish()).rejects.toMatchObject({ code: Code.Unavailable });
		lab.retire(alpha);
		await establish();
		expect((await after.shadow(idOf(user)))?.outgoing).toEqual(shadow?.shadow.outgoing);
	});
});

describe("a resource with many references", () => {
	it("is derived with pauses while some of them have no targets", async () => {
		const [first, lenient] = schemasOf("beta");
		const lab = new Lab(1);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const spec = { name: "beta", service: "beta", region: "r1", foreignTypes: [Thing] };
		const beta = await lab.add({ ...spec, types: [lenient.type] });
		const names = Array.from({ length: 30 }, (_, at) => `a${at}`);
		await Promise.all(names.slice(0, 28).map((name) => lab.run(alpha.write(thing(name)))));
		const data = create(lenient.type.schema, { likes: names.map(to) });
		await lab.run(beta.write(make(lenient.type, "w", data)));
		beta.crash();
		Object.assign(beta.spec, { types: [first.type] });
		await lab.run(beta.start());
		await lab.pass(10_000);
		const before = await versionOf(beta.backend);
		await lab.pass(60_000);
		expect((await versionOf(beta.backend)) - before).toBeLessThan(20);
	});
});

describe("a cascade", () => {
	it("is decided again if another schema changes the rule meanwhile", async () => {
		const lab = new Lab(1);
		let isChanged = false;
		const spec = { name: "alpha", service: "alpha", region: "r1", types: [Thing] };
		const alpha = await lab.add(spec, (backend) =>
			decorateBackend(backend, {
				commit: async (mutations, options) => {
					const deletes = mutations.some((each) => each.op === "delete" && each.id.name === "part");
					if (deletes && !isChanged) {
						isChanged = true;
						const name = shadowName(keyOf(idOf(thing("part")), "r1"));
						await updateShadow({ backend, runtime: lab.runtime }, name, ({ shadow }) => ({
							...shadow,
							outgoing: shadow.outgoing.map((each) => ({ ...each, rule: OnDelete.BLOCK })),
						}));
					}
					return backend.commit(mutations, options);
				},
			}),
		);
		await lab.run(alpha.write(thing("whole")));
		await lab.run(alpha.write(thing("part", { belongsTo: to("whole") })));
		await lab.run(alpha.delete(alpha.id(Thing, "whole")));
		await lab.pass(60_000);
		expect(isChanged).toBe(true);
		expect(await alpha.read(alpha.id(Thing, "part"))).toBeDefined();
	});
});

/**
 * `ownee`, whose owner was deleted, and is queried for the last time.
 *
 * @param meanwhile - a write when the pass of that query has begun.
 */
async function duringLastQuery({
	flags,
	meanwhile,
}: {
	readonly flags?: Flags;
	readonly meanwhile: (alpha: LabDeployment, owner: ID) => Promise<unknown>;
}) {
	const lab = new Lab(1);
	let next: (() => Promise<unknown>) | undefined;
	const spec = { name: "alpha", service: "alpha", region: "r1", types: [Thing] };
	const alpha = await lab.add(spec, (backend) =>
		decorateBackend(backend, {
			lookup: async (id, options) => {
				const now = id.name === "ownee" ? next : undefined;
				if (now !== undefined) {
					next = undefined;
					await now();
				}
				return backend.lookup(id, options);
			},
		}),
	);
	const owner = idOf(await lab.run(alpha.write(thing("owner"))));
	await lab.run(alpha.write(ownedBy(thing("ownee"), owner, flags)));
	await lab.pass(5_000);
	await lab.run(alpha.delete(owner));
	const ownee = alpha.id(Thing, "ownee");
	const notValid = async () => (await alpha.shadow(ownee))?.metaOwners[0]?.notValidAnswers;
	for (let passed = 0; passed < 120 && (await notValid()) !== 2; passed++) {
		await lab.pass(1_000);
	}
	expect(await notValid()).toBe(2);
	// The last query is due 30 s after the first one. Its pass starts with the current shadow, and reads the
	// resource only afterwards.
	await lab.pass(34_900 - lab.runtime.clock.monotonic());
	next = () => meanwhile(alpha, owner);
	await lab.pass(300_000);
	expect(next).toBeUndefined();
	expect(alpha.failures).toEqual([]);
	return { alpha, ownee };
}

describe("an owner reference that changes while its owner is queried", () => {
	it("is checked again", async () => {
		const { alpha, ownee } = await duringLastQuery({
			flags: { unsetOnDelete: true },
			meanwhile: (alpha, owner) => alpha.write(ownedBy(thing("ownee"), owner)),
		});
		expect(await alpha.read(ownee)).toBeUndefined();
	});

	it("is forgotten if the ownee is saved without it", async () => {
		const { alpha, ownee } = await duringLastQuery({
			meanwhile: (alpha) => alpha.write(thing("ownee")),
		});
		expect(await alpha.read(ownee)).toMatchObject({ ownerReferences: [] });
	});

	it("is forgotten if the ownee is saved with another owner", async () => {
		const { alpha, ownee } = await duringLastQuery({
			meanwhile: async (alpha) => {
				const other = idOf(await alpha.write(thing("other")));
				await alpha.write(ownedBy(thing("ownee"), other));
			},
		});
		expect((await alpha.read(ownee))?.ownerReferences).toMatchObject([{ name: "other" }]);
		expect((await alpha.shadow(ownee))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("is forgotten if the ownee is deleted", async () => {
		const { alpha, ownee } = await duringLastQuery({
			meanwhile: (alpha) => alpha.delete(alpha.id(Thing, "ownee")),
		});
		expect(await alpha.read(ownee)).toBeUndefined();
	});
});

describe("a write with several foreign targets", () => {
	it("depends on the guards of all of them, including new ones", async () => {
		const commits: (readonly Mutation[])[] = [];
		const decorate = (backend: StorageBackend): StorageBackend =>
			decorateBackend(backend, {
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
		const write = commits.map((all) => all.map(nameOf)).find((all) => all.includes("w")) ?? [];
		expect(write.filter((name) => guards.has(name)).sort()).toEqual([...guards].sort());
	});
});

describe("a change of a shadow", () => {
	it("reads strongly after a conflict if the server lags behind", async () => {
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
		const late: StorageBackend = decorateBackend(memory, {
			lookup: async (id, options) =>
				options?.consistency === "strong" || old === undefined
					? memory.lookup(id, options)
					: old.resource,
		});
		const seen: string[] = [];
		await updateShadow({ backend: late, runtime }, "s-a", (stored) => {
			seen.push(stored.shadow.uid);
			return { ...stored.shadow, uid: `${stored.shadow.uid}!`, lifecycle: Lifecycle.DELETING };
		});
		expect(seen).toEqual(["01A", "01B"]);
		expect((await readShadow(memory, "s-a"))?.shadow.uid).toBe("01B!");
	});
});
