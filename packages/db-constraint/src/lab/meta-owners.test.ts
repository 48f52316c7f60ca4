import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ID, OwnerReferenceSchema } from "@plinth/proto";
import {
	Lifecycle,
	type Shadow,
	SourceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isMarkedForDeletion, tenancyOf } from "@plinth/resource";
import {
	CasFailure,
	decorateBackend,
	Exhausted,
	Refused,
	type StorageBackend,
} from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { giveUpUid } from "../registry/own-identity.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { updateDeploymentRecord } from "../succession/deployment-record.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab, type LabDeployment, make, type TransportDecorator } from "./lab.fixture.ts";
import { hooked } from "./things.fixture.ts";

/** What a test changes. */
interface Decorations {
	/** Of each connection between the services. */
	readonly transport?: TransportDecorator;
	/** Of the storage of the resources. */
	readonly backend?: (backend: StorageBackend) => StorageBackend;
}

async function twoServices({ transport, backend = (same) => same }: Decorations = {}) {
	const lab = new Lab(1, {}, transport);
	const alpha = await lab.add({ name: "alpha-1", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{
			name: "beta-2",
			service: "beta",
			region: "r2",
			types: [Widget],
			foreignTypes: [Thing],
		},
		backend,
	);
	const a = alpha.id(Thing, "a");
	const w = beta.id(Widget, "w");
	const owner = await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	return { lab, alpha, beta, a, w, uid: owner.id?.uid ?? "" };
}

/** Holds the verdicts about owners, which were decided already, until `release` is called. */
function heldVerdicts() {
	const { promise: released, resolve: release } = Promise.withResolvers<void>();
	let calls = 0;
	const decorate: TransportDecorator = (transport) => ({
		stream: (...args) => transport.stream(...args),
		async unary(method, ...args) {
			const response = await transport.unary(method, ...args);
			if (method.name === "CheckMetaOwners") {
				calls += 1;
				await released;
			}
			return response;
		},
	});
	return { decorate, release, calls: () => calls };
}

interface Ownership {
	readonly owner: ID;
	readonly uid: string;
	/** Default: that of `alpha`. */
	readonly region?: string;
	readonly unsetOnDelete?: boolean;
	readonly requiresOwnerReference?: boolean;
}

function owned(...owners: readonly Ownership[]) {
	const resource = make(Widget, "w", create(WidgetSchema));
	resource.ownerReferences = owners.map(({ owner, uid, ...flags }) =>
		create(OwnerReferenceSchema, {
			type: owner.type!,
			tenancy: owner.tenancy!,
			name: owner.name,
			uid,
			region: "r1",
			...flags,
		}),
	);
	return resource;
}

/** `w` is owned by `a`, which is recorded as valid. */
async function validOwner(decorations: Decorations) {
	const both = await twoServices(decorations);
	const { lab, alpha, beta, a, w, uid } = both;
	await lab.run(beta.write(owned({ owner: a, uid })));
	await lab.pass(5_000);
	expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
	/** As a holder query does. */
	const announceDeletion = () =>
		beta.current.constraints.context.hints.deleting({
			deploymentUid: alpha.info.uid,
			target: lab.keyOf(alpha, a),
			targetUid: uid,
		});
	return { ...both, announceDeletion };
}

/** Changes a shadow as another version of the code might have. */
function changeShadow(
	{ lab, beta }: Awaited<ReturnType<typeof twoServices>>,
	id: ID,
	change: (shadow: Shadow) => Shadow,
) {
	const name = shadowName(lab.keyOf(beta, id));
	return lab.run(updateShadow(beta.current.constraints.context, name, (it) => change(it.shadow)));
}

const read = (deployment: LabDeployment, id: ID) => deployment.read(id);

describe("owners in other deployments", () => {
	it("records the ownee's deployment with the owner, and deletes the ownee with the owner", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(5_000);
		expect((await alpha.shadow(a))?.ownees).toMatchObject([{ deployment: { uid: beta.info.uid } }]);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
		await lab.run(alpha.delete(a));
		expect(await read(alpha, a)).toBeDefined();
		await lab.pass(300_000);
		expect(await read(beta, w)).toBeUndefined();
		expect(await read(alpha, a)).toBeUndefined();
	});

	it("queries owners again after a restore, since they may have been deleted since the backup", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(5_000);
		const shadow = await readShadow(beta.backend, shadowName(lab.keyOf(beta, w)));
		expect(shadow?.shadow.metaOwners).toMatchObject([{ valid: true }]);
		const stored = await read(beta, w);
		const backup = [stored, shadow?.resource].filter((each) => each !== undefined);
		await lab.run(alpha.delete(a));
		await lab.pass(60_000);
		const after = await lab.succeed(beta, backup);
		expect(await read(after, w)).toBeDefined();
		const { context } = after.current.constraints;
		await lab.run(reestablishOwnReferences(context, new AbortController().signal));
		Object.assign(after.info, { established: true });
		lab.changed();
		await lab.pass(120_000);
		expect(await read(after, w)).toBeUndefined();
	});

	it("records no owner as valid under a uid that another server has given up while it was queried", async () => {
		const { promise: received, resolve: receive } = Promise.withResolvers<void>();
		const { lab, alpha, beta, a, w, uid } = await twoServices({
			transport: (transport) => ({
				stream: (...args) => transport.stream(...args),
				async unary(method, ...args) {
					const response = await transport.unary(method, ...args);
					if (method.name === "CheckMetaOwners") {
						await received;
					}
					return response;
				},
			}),
		});
		const { backend, info } = beta;
		const { runtime } = lab;
		await lab.run(updateDeploymentRecord(backend, runtime, (now) => ({ ...now, uid: info.uid })));
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(5_000);
		expect((await alpha.shadow(a))?.ownees).toMatchObject([{ deployment: { uid: info.uid } }]);
		await lab.run(giveUpUid({ backend, runtime }, info.uid));
		receive();
		await lab.pass(60_000);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: false }]);
	});

	it.each([
		["written again", false],
		["created again", true],
	])(
		"deletes what was %s with an owner that was deleted before a late verdict",
		async (_how, isCreated) => {
			const { decorate, calls, release } = heldVerdicts();
			const { lab, alpha, beta, a, w, uid } = await twoServices({ transport: decorate });
			await lab.run(beta.write(owned({ owner: a, uid })));
			await lab.pass(500);
			expect(calls()).toBe(1);
			expect((await alpha.shadow(a))?.ownees).toHaveLength(1);
			await lab.run<unknown>(isCreated ? beta.delete(w) : beta.write(owned()));
			await lab.run(alpha.delete(a));
			await lab.pass(500);
			expect(await read(alpha, a)).toBeUndefined();
			await lab.run(beta.write(owned({ owner: a, uid })));
			release();
			await lab.pass(300_000);
			expect(await read(beta, w)).toBeUndefined();
		},
	);

	it("deletes what has an owner that the successor of its deployment has deleted before a late verdict of the predecessor", async () => {
		const { decorate, calls, release } = heldVerdicts();
		const { lab, alpha, beta, a, w, uid } = await twoServices({ transport: decorate });
		const stored = await read(alpha, a);
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(500);
		expect(calls()).toBe(1);
		const after = await restore(lab, alpha, stored && [stored]);
		await lab.run(after.delete(a));
		expect(await read(after, a)).toBeUndefined();
		release();
		await lab.pass(300_000);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("removes an owner of the same deployment that was deleted before the verdict about another one", async () => {
		const { decorate, release } = heldVerdicts();
		const { lab, beta, a, w, uid } = await twoServices({ transport: decorate });
		const own = beta.id(Widget, "own");
		const stored = await lab.run(beta.write({ ...owned(), id: own }));
		const both = owned({ owner: own, uid: stored.id?.uid ?? "", region: "r2" }, { owner: a, uid });
		await lab.run(beta.write(both));
		await lab.pass(500);
		expect((await beta.shadow(own))?.ownees).toHaveLength(1);
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.run(beta.delete(own));
		expect(await read(beta, own)).toBeUndefined();
		await lab.run(beta.write(both));
		release();
		await lab.pass(300_000);
		expect((await read(beta, w))?.ownerReferences).toMatchObject([{ uid }]);
	});

	it("records an owner as valid although the shadow changes during the query", async () => {
		const { decorate, calls, release } = heldVerdicts();
		const both = await twoServices({ transport: decorate });
		const { lab, beta, a, w, uid } = both;
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(500);
		const deployment = { uid: "01JDXXXXXXXXXXXXXXXXXXXXXX", name: "gamma-1" };
		const source = create(SourceSchema, { deployment });
		await changeShadow(both, w, (shadow) => ({ ...shadow, sources: [source] }));
		release();
		await lab.pass(5_000);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
		expect(calls()).toBe(1);
	});

	it("queries a valid owner whose deletion was announced until its deployment responds, after growing pauses", async () => {
		let failing = 0;
		let now = () => 0;
		const calledMs: number[] = [];
		const { lab, beta, w, announceDeletion } = await validOwner({
			transport: hooked(async (method) => {
				if (method === "CheckMetaOwners") {
					calledMs.push(now());
					if (failing > 0) {
						failing -= 1;
						throw new ConnectError("lost", Code.Unavailable);
					}
				}
			}),
		});
		now = () => lab.runtime.clock.monotonic();
		calledMs.length = 0;
		failing = 2;
		announceDeletion();
		await lab.pass(300_000);
		const [first = Number.NaN, ...others] = calledMs;
		expect(others.map((each) => each - first)).toEqual([2_000, 6_000]);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it("queries a valid owner whose deletion was announced also if the pass fails before", async () => {
		let failing = 0;
		let calls = 0;
		const { lab, beta, announceDeletion } = await validOwner({
			transport: hooked(async (method) => {
				calls += method === "CheckMetaOwners" ? 1 : 0;
			}),
			backend: (backend) =>
				decorateBackend(backend, {
					lookup: async (id, options) => {
						if (failing > 0 && id.name.startsWith("guard-")) {
							failing -= 1;
							throw new ConnectError("the storage can't be reached", Code.Unavailable);
						}
						return backend.lookup(id, options);
					},
				}),
		});
		calls = 0;
		failing = 1;
		announceDeletion();
		await lab.pass(300_000);
		expect(failing).toBe(0);
		expect(beta.failures).toHaveLength(1);
		expect(calls).toBe(1);
	});

	it("deletes what an announced owner owned also if the verdict arrives while another deletion of it is checked", async () => {
		let held = Promise.resolve();
		const both = await validOwner({
			transport: hooked((method) => (method === "CheckMetaOwners" ? held : Promise.resolve())),
		});
		const { lab, alpha, beta, a, w, announceDeletion } = both;
		const { version = "" } = (await read(alpha, a)) ?? {};
		await lab.run(alpha.backend.commit([{ op: "delete", id: a, expectedVersion: version }]));
		const { promise, resolve: release } = Promise.withResolvers<void>();
		held = promise;
		announceDeletion();
		await lab.pass(500);
		const become = (lifecycle: Lifecycle) =>
			changeShadow(both, w, (shadow) => ({ ...shadow, lifecycle }));
		await become(Lifecycle.CHECKING);
		release();
		await lab.pass(100);
		await become(Lifecycle.ACTIVE);
		await lab.pass(120_000);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("removes a reference to a missing owner only after a grace period, and the resource with the last one", async () => {
		const { lab, beta, a, w } = await twoServices();
		await lab.run(beta.write(owned({ owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" })));
		await lab.pass(20_000);
		expect(await read(beta, w)).toBeDefined();
		await lab.pass(60_000);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("deletes what has lost its last owner after growing pauses while the storage has no room for that", async () => {
		let now = () => 0;
		const attemptedMs: number[] = [];
		const { lab, beta, a, w } = await twoServices({
			backend: (backend) =>
				decorateBackend(backend, {
					commit: async (mutations, options) => {
						const isMark = mutations.some(
							(each) => each.op === "put" && isMarkedForDeletion(each.resource),
						);
						if (isMark && attemptedMs.length < 4) {
							attemptedMs.push(now());
							throw new Exhausted("too many commits are already waiting");
						}
						return backend.commit(mutations, options);
					},
				}),
		});
		now = () => lab.runtime.clock.monotonic();
		const lost = owned({ owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" });
		const { id } = await lab.run(beta.write(lost));
		const ownee = owned({ owner: w, uid: id?.uid ?? "", region: "r2" });
		await lab.run(beta.write({ ...ownee, id: beta.id(Widget, "ownee") }));
		await lab.pass(120_000);
		const [first = Number.NaN, ...others] = attemptedMs;
		expect(others.map((each) => each - first)).toEqual([2_000, 6_000, 14_000]);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("keeps a resource that has another owner, or outlives its owners", async () => {
		const { lab, beta, a, w, uid } = await twoServices();
		const gone = { owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" };
		await lab.run(beta.write(owned(gone, { owner: a, uid })));
		await lab.pass(120_000);
		expect((await read(beta, w))?.ownerReferences).toMatchObject([{ uid }]);
		await lab.run(beta.write(owned({ ...gone, unsetOnDelete: true })));
		await lab.pass(120_000);
		expect((await read(beta, w))?.ownerReferences).toEqual([]);
	});

	it("rewrites references to the version that the owner's deployment announces, forward only", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(5_000);
		const version = async () => (await read(beta, w))?.ownerReferences[0]?.type?.groupVersion;
		lab.announce(alpha, "v2");
		await lab.pass(5_000);
		expect(await version()).toBe("v2");
		lab.announce(alpha, "v1");
		await lab.pass(5_000);
		expect(await version()).toBe("v2");
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
	});

	it.each([
		["refused", () => new Refused(Code.FailedPrecondition, "the type is not served any more")],
		["more than the storage has room for", () => new Exhausted("the storage is full")],
		[
			"in conflict with another write, which names the owner as before",
			() => new CasFailure([0], ["w"]),
		],
	])(
		"checks owners also while the rewrite of a reference is %s, which it tries again",
		async (_is, failure) => {
			let fails = true;
			let announced = "v2";
			const { lab, alpha, beta, a, w, uid } = await twoServices({
				backend: (backend) =>
					decorateBackend(backend, {
						commit: async (mutations, options) => {
							const isRewrite = mutations.some(
								(each) =>
									each.op === "put" &&
									each.resource.ownerReferences.some(
										({ type }) => type?.groupVersion === announced,
									),
							);
							if (isRewrite && fails) {
								throw failure();
							}
							return backend.commit(mutations, options);
						},
					}),
			});
			const other = beta.id(Widget, "other");
			const version = async (id: ID) =>
				(await read(beta, id))?.ownerReferences[0]?.type?.groupVersion;
			await lab.run(beta.write(owned({ owner: a, uid })));
			await lab.run(beta.write({ ...owned({ owner: a, uid }), id: other }));
			await lab.pass(5_000);
			lab.announce(alpha, "v2");
			await lab.pass(5_000);
			expect([await version(w), await version(other)]).toEqual(["v1", "v1"]);
			fails = false;
			await lab.pass(60_000);
			expect([await version(w), await version(other)]).toEqual(["v2", "v2"]);
			announced = "v3";
			fails = true;
			lab.announce(alpha, announced);
			await lab.run(alpha.delete(a));
			await lab.pass(300_000);
			expect(await read(beta, w)).toBeUndefined();
			expect(await read(alpha, a)).toBeUndefined();
		},
	);

	it("rewrites a reference that a later write names by an older version", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		lab.announce(alpha, "v2");
		await lab.run(beta.write(owned({ owner: a, uid })));
		await lab.pass(5_000);
		const version = async () => (await read(beta, w))?.ownerReferences[0]?.type?.groupVersion;
		expect(await version()).toBe("v2");
		await lab.run(beta.write(owned({ owner: a, uid })));
		expect(await version()).toBe("v1");
		await lab.pass(5_000);
		expect(await version()).toBe("v2");
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true, version: "v2" }]);
	});

	it("changes nothing while an owner's deployment is unreachable", async () => {
		const { lab, alpha, beta, a, w } = await twoServices();
		alpha.crash();
		await lab.run(beta.write(owned({ owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" })));
		await lab.pass(600_000);
		expect(await read(beta, w)).toBeDefined();
	});

	it("keeps what is owned by a resource of a place where no deployment is known", async () => {
		const { lab, beta, a, w, uid } = await twoServices();
		const elsewhere = owned({ owner: a, uid });
		for (const each of elsewhere.ownerReferences) {
			each.region = "r9";
		}
		await lab.run(beta.write(elsewhere));
		await lab.pass(180_000);
		expect(await read(beta, w)).toBeDefined();
	});

	it("refuses an owner without a uid, which names no incarnation", async () => {
		const { lab, beta, a, w } = await twoServices();
		await expect(lab.run(beta.write(owned({ owner: a, uid: "" })))).rejects.toThrow(
			"uid is required",
		);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("removes all references to a lost owner that several references name", async () => {
		const { lab, beta, a, w } = await twoServices();
		const gone = { owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" };
		await lab.run(beta.write(owned(gone, { ...gone, requiresOwnerReference: true })));
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ requiresOwnerReference: false }]);
		await lab.pass(120_000);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("keeps a resource if any of its references to a lost owner allows it to outlive the owner", async () => {
		const { lab, beta, a, w } = await twoServices();
		const gone = { owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" };
		await lab.run(beta.write(owned(gone, { ...gone, unsetOnDelete: true })));
		await lab.pass(120_000);
		expect((await read(beta, w))?.ownerReferences).toEqual([]);
	});

	it("checks an owner once that an older shadow records twice", async () => {
		const both = await twoServices();
		const { lab, beta, a, w } = both;
		await lab.run(beta.write(owned({ owner: a, uid: "01JDXXXXXXXXXXXXXXXXXXXXXX" })));
		await changeShadow(both, w, (shadow) => ({
			...shadow,
			metaOwners: [...shadow.metaOwners, ...shadow.metaOwners],
		}));
		await lab.pass(120_000);
		expect(await read(beta, w)).toBeUndefined();
	});

	it("accepts writes of a resource that older code has stored with an owner without a uid", async () => {
		const both = await twoServices();
		const { lab, beta, a, w, uid } = both;
		const stored = await lab.run(beta.write(owned({ owner: a, uid })));
		const ownerReferences = stored.ownerReferences.map((each) => ({ ...each, uid: "" }));
		const resource = { ...stored, ownerReferences };
		await lab.run(beta.backend.commit([{ op: "put", resource, expectedVersion: stored.version }]));
		await changeShadow(both, w, (shadow) => ({
			...shadow,
			metaOwners: shadow.metaOwners.map((each) => ({ ...each, ownerUid: "", version: "" })),
		}));
		await lab.run(beta.write(owned({ owner: a, uid: "" })));
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ ownerUid: "", version: "v1" }]);
	});

	it("fills in the default partition and namespace of an owner", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: { ...a, tenancy: tenancyOf({}) }, uid })));
		await lab.pass(120_000);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
		await lab.run(alpha.delete(a));
		await lab.pass(300_000);
		expect(await read(beta, w)).toBeUndefined();
		expect(await read(alpha, a)).toBeUndefined();
	});

	it("keeps the full name of a recorded owner when a release no longer registers its type", async () => {
		const { lab, alpha, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: { ...a, tenancy: tenancyOf({}) }, uid })));
		await lab.pass(5_000);
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([{ valid: true }]);
		beta.crash();
		Object.assign(beta.spec, { foreignTypes: [] });
		await lab.run(beta.start());
		await lab.pass(60_000);
		await lab.run(beta.write(owned({ owner: { ...a, tenancy: tenancyOf({}) }, uid })));
		expect((await beta.shadow(w))?.metaOwners).toMatchObject([
			{ valid: true, owner: { partition: "default", namespace: "default" } },
		]);
		lab.announce(alpha, "v2");
		await lab.pass(5_000);
		expect((await read(beta, w))?.ownerReferences).toMatchObject([
			{ type: { groupVersion: "v2" } },
		]);
		await lab.run(alpha.delete(a));
		await lab.pass(300_000);
		expect(await read(alpha, a)).toBeUndefined();
		expect(await read(beta, w)).toBeUndefined();
	});

	it("gives up an owner that does not reference the ownee, if that is required", async () => {
		const { lab, beta, a, w, uid } = await twoServices();
		await lab.run(beta.write(owned({ owner: a, uid, requiresOwnerReference: true })));
		await lab.pass(120_000);
		expect(await read(beta, w)).toBeUndefined();
	});
});
