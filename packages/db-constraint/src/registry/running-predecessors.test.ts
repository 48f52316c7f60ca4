import { create } from "@bufbuild/protobuf";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { readDeploymentRecord } from "../succession/deployment-record.ts";
import { responsibleUid } from "../succession/successors.ts";
import { Deployment } from "./meta-types.ts";
import { RegistryLab, type Started, whenKnown } from "./registry-lab.fixture.ts";

/** A meta deployment, `alpha` with the thing `a`, and `beta`. */
async function registered() {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1");
	await alpha.client.write({ resource: make(Thing, "a", create(ThingSchema)) });
	const beta = await lab.start("beta", "r1", { storageIncarnation: "one" });
	return { lab, meta, alpha, beta };
}

/** A deployment elsewhere whose storage is a copy. */
async function restored({ backend }: Started) {
	const copy = createMemoryBackend({ runtime: systemRuntime });
	const query = { tenancy: { partition: "", namespace: "" }, namePrefix: "" };
	const { resources } = await backend.list({ type: ResourceShadow.type, ...query });
	for (const resource of resources) {
		await copy.commit([{ op: "put", resource, expectedVersion: "" }]);
	}
	return { backend: copy, storageIncarnation: "two", address: "elsewhere" };
}

/** Waits until the stored registry view has the deployments, by uid. */
async function whenStored({ backend }: Started, ...uids: string[]) {
	const query = { tenancy: { partition: "", namespace: "" }, namePrefix: "registry" };
	await vi.waitFor(
		async () => {
			const { resources } = await backend.list({ type: ResourceShadow.type, ...query });
			const records = resources.map((each) => recordOf(each).record);
			const stored = records.flatMap((record) =>
				record.case === "registryEntry" ? (record.value.resource?.id?.uid ?? "") : [],
			);
			expect(records.map((record) => record.case)).toContain("registry");
			expect(stored).toEqual(expect.arrayContaining(uids));
		},
		{ timeout: 300_000 },
	);
}

const widget = () =>
	make(Widget, "w", create(WidgetSchema, { needs: referenceTo({ type: Thing.type, name: "a" }) }));

describe("a server whose backup was restored elsewhere", () => {
	it("stops, keeps its uid, and does not take over from its successor when it starts again", async () => {
		const { lab, beta } = await registered();
		const { uid } = beta.registry.self;
		const after = await lab.start("beta", "r1", await restored(beta));
		await whenKnown(beta.registry, () => beta.registry.state.kind === "succeeded");
		expect(beta.registry.state).toMatchObject({
			reason: expect.stringContaining(`${uid} was taken over by ${after.registry.self.uid}`),
		});
		await beta.stop();
		const { backend } = beta;
		expect((await readDeploymentRecord(backend))?.uid).toBe(uid);
		const again = await lab.begin("beta", "r1", { backend, storageIncarnation: "one" });
		await vi.waitFor(
			() =>
				expect(again.registry.state).toMatchObject({
					kind: "registering",
					lastProblem: expect.stringContaining(`${uid} was taken over by`),
				}),
			{ timeout: 300_000 },
		);
		expect(after.registry.state.kind).toBe("registered");
	});

	it("stops also if that backup is restored a second time", async () => {
		const { lab, alpha, beta } = await registered();
		const { uid } = beta.registry.self;
		const backup = await restored(beta);
		const again = { ...(await restored(beta)), storageIncarnation: "three", address: "third" };
		await beta.stop();
		const second = await lab.start("beta", "r1", backup);
		const third = await lab.start("beta", "r1", again);
		expect(third.registry.self).toMatchObject({
			predecessorUid: uid,
			otherPredecessorUids: [second.registry.self.uid],
		});
		await whenKnown(second.registry, () => second.registry.state.kind === "succeeded");
		const { registry } = alpha;
		await whenKnown(registry, () => registry.byUid(third.registry.self.uid) !== undefined);
		for (const each of [uid, second.registry.self.uid]) {
			expect(responsibleUid(registry, each)).toBe(third.registry.self.uid);
		}
		expect(registry.find("beta", "r1")?.uid).toBe(third.registry.self.uid);
	});

	it("takes over again once operators have deleted its Deployment and disabled the other one", async () => {
		const { lab, meta, beta } = await registered();
		const { uid } = beta.registry.self;
		const after = await lab.start("beta", "r1", await restored(beta));
		await beta.stop();
		await after.stop();
		await lab.delete(meta, "beta-r1");
		const again = { backend: beta.backend, storageIncarnation: "one" };
		const { registry } = await lab.begin("beta", "r1", again);
		await vi.waitFor(
			() =>
				expect(registry.state).toMatchObject({
					lastProblem: expect.stringContaining("taken over"),
				}),
			{ timeout: 300_000 },
		);
		expect((await readDeploymentRecord(beta.backend))?.uid).toBe(uid);
		await lab.change(meta, "beta-r1-2", { disabled: true });
		await registry.ready(AbortSignal.timeout(300_000));
		expect(registry.self).toMatchObject({
			name: "beta-r1",
			predecessorUid: uid,
			otherPredecessorUids: [after.registry.self.uid],
		});
		expect(registry.state.kind).toBe("registered");
	});

	it("is stopped by others while it can't reach a meta deployment, and does not start again", async () => {
		const { lab, meta, alpha, beta } = await registered();
		const { uid } = beta.registry.self;
		await whenStored(beta, alpha.registry.self.uid, uid);
		await beta.stop();
		const after = await lab.start("beta", "r1", await restored(beta));
		await whenKnown(alpha.registry, () => alpha.registry.successorOf(uid) !== undefined);
		const { backend } = beta;
		await meta.stop();
		const alone = await lab.start("beta", "r1", { backend, storageIncarnation: "one" });
		await expect(alone.client.write({ resource: widget() })).rejects.toThrow(
			`${uid} was taken over by ${after.registry.self.uid}`,
		);
		await vi.waitFor(() => expect(alone.registry.state.kind).toBe("succeeded"), {
			timeout: 300_000,
		});
		await alone.stop();
		expect((await readDeploymentRecord(backend))?.uid).toBe(uid);
	});

	it("does not start with a stored registry view that has its successor", async () => {
		const { lab, meta, beta } = await registered();
		const after = await lab.start("beta", "r1", await restored(beta));
		await whenStored(beta, beta.registry.self.uid, after.registry.self.uid);
		await beta.stop();
		await meta.stop();
		const { backend } = beta;
		const alone = await lab.begin("beta", "r1", { backend, storageIncarnation: "one" });
		await expect(alone.registry.ready(AbortSignal.timeout(1_000))).rejects.toThrow();
	});
});

/** Registers as the message of a start does, which arrives now. */
async function arrive({ client }: Started, name: string, fields: MessageInit) {
	const data = create(DeploymentSchema, { service: "beta", region: "r1", ...fields });
	const resource = resourceOf(Deployment, { id: idOf(Deployment, name), data });
	const response = await client.write({ resource, createOnly: true });
	return response.resource?.id?.uid ?? "";
}

type MessageInit = NonNullable<Parameters<typeof create<typeof DeploymentSchema>>[1]>;

describe("two restores of one backup that register at the same time", () => {
	it("look the same to all, and the one with the greater uid takes over from both", async () => {
		const { lab, meta, alpha, beta } = await registered();
		const { uid } = beta.registry.self;
		const one = await restored(beta);
		const two = { ...(await restored(beta)), storageIncarnation: "three", address: "third" };
		await beta.stop();
		const first = await lab.start("beta", "r1", one);
		// It has listed the registrations before the first one was among them.
		const secondUid = await arrive(meta, "beta-r1-3", {
			...{ storageIncarnation: "three", address: "http://third", predecessorUid: uid },
		});
		const { registry } = alpha;
		await whenKnown(registry, () => registry.byUid(secondUid) !== undefined);
		expect(responsibleUid(registry, uid)).toBe(secondUid);
		await whenKnown(first.registry, () => first.registry.byUid(secondUid) !== undefined);
		expect(first.registry.successorOf(uid)?.uid).toBe(secondUid);

		const second = await lab.begin("beta", "r1", two);
		await whenKnown(
			second.registry,
			() =>
				second.registry.state.kind !== "registering" &&
				second.registry.byUid(first.registry.self.uid) !== undefined,
		);
		expect(second.registry.state).toMatchObject({
			kind: "deleted",
			reason: expect.stringContaining("was restored from the same backup"),
		});
		await vi.waitFor(async () => expect((await readDeploymentRecord(two.backend))?.uid).toBe(""), {
			timeout: 300_000,
		});
		await second.stop();
		const again = await lab.start("beta", "r1", two);
		expect(again.registry.self).toMatchObject({
			predecessorUid: secondUid,
			otherPredecessorUids: [uid, first.registry.self.uid].sort(),
		});
		expect(again.registry.state.kind).toBe("registered");
		await whenKnown(first.registry, () => first.registry.state.kind === "succeeded");
		await whenKnown(registry, () => registry.byUid(again.registry.self.uid) !== undefined);
		for (const each of [uid, first.registry.self.uid, secondUid]) {
			expect(responsibleUid(registry, each)).toBe(again.registry.self.uid);
		}
	});
});

describe("a registration that arrives late", () => {
	it("is deleted by the servers that run, if their storage never used it", async () => {
		const { meta, alpha, beta } = await registered();
		const late = await arrive(meta, "beta-r1-2", { storageIncarnation: "one" });
		const other = await arrive(meta, "beta-r1-3", { storageIncarnation: "other" });
		const { registry } = alpha;
		await whenKnown(registry, () => registry.byUid(other) !== undefined);
		await vi.waitFor(async () => expect(await registry.isDeleted(late)).toBe(true), {
			timeout: 300_000,
		});
		await whenKnown(registry, () => registry.byUid(late) === undefined);
		expect(registry.byUid(other)).toBeDefined();
		expect(registry.byUid(beta.registry.self.uid)).toBeDefined();
	});

	it("is not taken for the one that a deleted deployment needs, and is deleted", async () => {
		const { lab, meta, alpha, beta } = await registered();
		const { uid } = beta.registry.self;
		await beta.stop();
		await lab.delete(meta, "beta-r1");
		const late = await arrive(meta, "beta-r1", { storageIncarnation: "one" });
		const { backend } = beta;
		const again = await lab.start("beta", "r1", { backend, storageIncarnation: "one" });
		expect(again.registry.self).toMatchObject({ name: "beta-r1-2", predecessorUid: uid });
		const { registry } = alpha;
		await vi.waitFor(async () => expect(await registry.isDeleted(late)).toBe(true), {
			timeout: 300_000,
		});
	});
});
