import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService } from "@plinth/proto";
import {
	DeletedDeploymentSchema,
	DeploymentSchema,
	RegionSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, idOf, newUlid, resourceOf } from "@plinth/resource";
import { type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { seededRuntime } from "@plinth/runtime/testing";
import {
	createMemoryBackend,
	decorateBackend,
	type StorageBackend,
	StorageUnavailable,
	VersionCompacted,
} from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { ThingV2, WidgetV2 } from "../lab/two-versions.fixture.ts";
import { ResourceShadow, readRecord, recordOf } from "../shadow/shadow-records.ts";
import { acceptReport, completeRecovery } from "./meta-recovery.ts";
import {
	DeletedDeployment,
	Deployment,
	deletedDeploymentName,
	metaTypes,
	Region,
} from "./meta-types.ts";
import { OwnRecovery } from "./own-recovery.ts";
import { RegistryLab, type Started, type StartOptions, whenKnown } from "./registry-lab.fixture.ts";
import { RegistryReports } from "./registry-report.ts";
import type { RegisteredDeployment } from "./registry-view.ts";

const everywhere = { tenancy: { partition: "", namespace: "" }, namePrefix: "" };

/** A copy of a storage, as of now. Like any that is restored, it does not resume the watches of before. */
async function backUp(backend: StorageBackend): Promise<StorageBackend> {
	const copy = createMemoryBackend({ runtime: systemRuntime });
	for (const { type } of [...metaTypes, ResourceShadow]) {
		const { resources } = await backend.list({ type, ...everywhere }, { consistency: "strong" });
		for (const resource of resources) {
			await copy.commit([{ op: "put", resource, expectedVersion: "" }]);
		}
	}
	// The versions of a restored storage are later than all before.
	let revision = 0;
	while (revision < 1_000) {
		const resource = resourceOf(Region, {
			id: { ...idOf(Region, "r9"), uid: "r9" },
			data: create(RegionSchema),
		});
		const { version } = await copy.commit([{ op: "put", resource, expectedVersion: "" }]);
		await copy.commit([{ op: "delete", id: idOf(Region, "r9"), expectedVersion: version }]);
		revision = Number(version) + 1;
	}
	return decorateBackend(copy, {
		watchList: (query, options) => {
			const after = options?.afterVersion ?? "";
			if (after !== "" && Number(after) < revision) {
				throw new VersionCompacted(after, "the storage was restored");
			}
			return copy.watchList(query, options);
		},
	});
}

/** A stopped deployment, beta, that was deleted after the backup, which alpha knows. */
async function deletedSinceBackup() {
	const { lab, meta, alpha } = await begun();
	const beta = await lab.start("beta", "r1");
	const { uid } = beta.registry.self;
	await beta.stop();
	const backup = await backUp(meta.backend);
	await lab.delete(meta, "beta-r1");
	await whenDeleted(alpha, uid);
	return { lab, meta, alpha, beta, uid, backup };
}

/** A meta deployment, and `alpha`. */
async function begun(options: StartOptions = {}) {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1", { storageIncarnation: "one", ...options });
	const alpha = await lab.start("alpha", "r1");
	return { lab, meta, alpha };
}

/** Starts the meta deployment again, from a backup. */
async function restore(
	lab: RegistryLab,
	meta: Started,
	backup: StorageBackend,
	incarnation = "two",
) {
	await meta.stop();
	return lab.start("meta", "r1", { backend: backup, storageIncarnation: incarnation });
}

/** Whether the meta deployment has every report. */
async function isComplete({ backend }: Started): Promise<boolean> {
	return (await readRecord(backend, "recovery", { consistency: "strong" })) === undefined;
}

async function whenComplete(meta: Started, ...followers: readonly Started[]) {
	await vi.waitFor(async () => expect(await isComplete(meta)).toBe(true), { timeout: 300_000 });
	for (const { registry } of [meta, ...followers]) {
		await whenKnown(registry, () => registry.isComplete);
	}
}

/** The Deployments that a meta deployment has, by name. */
async function deployments({
	backend,
}: Pick<Started, "backend">): Promise<ReadonlyMap<string, string>> {
	const { resources } = await backend.list(
		{ type: Deployment.type, ...everywhere },
		{ consistency: "strong" },
	);
	return new Map(resources.map(({ id }) => [id?.name ?? "", id?.uid ?? ""]));
}

/** The version that a deployment has announced. */
async function versionOf({ client }: Started, name: string): Promise<string | undefined> {
	const { resource } = await client.read({ id: idOf(Deployment, name) });
	return resource && decodeShared(Deployment, resource).data.currentVersion;
}

/** The Deployment as it was before, by a clock that was far ahead. */
async function withOlderVersion({ client }: Started, name: string): Promise<Resource> {
	const { resource } = await client.read({ id: idOf(Deployment, name) });
	if (resource?.id === undefined) {
		throw new Error(`no Deployment ${name}`);
	}
	const data = { ...decodeShared(Deployment, resource).data, currentVersion: "v0" };
	return { ...resourceOf(Deployment, { id: resource.id, data }), generation: "7".repeat(26) };
}

async function deletions({ backend }: Pick<Started, "backend">): Promise<readonly string[]> {
	const { resources } = await backend.list(
		{ type: DeletedDeployment.type, ...everywhere },
		{ consistency: "strong" },
	);
	return resources.map(({ id }) => id?.name ?? "");
}

/** Waits until a deployment knows of a deletion: it has stored the record of that, which it reports. */
async function whenDeleted({ registry, backend }: Started, uid: string) {
	await whenKnown(registry, () => registry.byUid(uid) === undefined);
	await whenStored(backend, (resource) =>
		resource.id?.type?.kind === DeletedDeployment.type.kind
			? decodeShared(DeletedDeployment, resource).data.uid === uid
			: false,
	);
}

/** Waits until the registry view in a storage has a resource. */
async function whenStored(backend: StorageBackend, isIt: (resource: Resource) => boolean) {
	await vi.waitFor(
		async () => {
			const { resources } = await backend.list({
				...{ type: ResourceShadow.type, ...everywhere, namePrefix: "registry-" },
			});
			const stored = resources.map(recordOf).flatMap(({ record }) => {
				const resource = record.case === "registryEntry" ? record.value.resource : undefined;
				return resource ?? [];
			});
			expect(stored.some(isIt)).toBe(true);
		},
		{ timeout: 300_000 },
	);
}

/**
 * The storage of a deployment at a server that lags: without strong consistency, it has no registry view. The first strong
 * read of that fails.
 */
function lagging(backend: StorageBackend) {
	const reads = { strong: 0 };
	const decorated = decorateBackend(backend, {
		list: async (query, options) => {
			if (!query.namePrefix.startsWith("registry")) {
				return backend.list(query, options);
			}
			if (options?.consistency !== "strong") {
				return { ...(await backend.list(query, options)), resources: [] };
			}
			reads.strong += 1;
			if (reads.strong === 1) {
				throw new StorageUnavailable("the storage can't be reached");
			}
			return backend.list(query, options);
		},
	});
	return { backend: decorated, reads };
}

/** Reports to a meta deployment that is recovering, as long as `recovering` has it. Some registrations with it fail. */
function reporting(fails: { failing: number }) {
	const runtime = seededRuntime({ seed: 1 });
	const meta: RegisteredDeployment = {
		...{ uid: "meta", name: "meta-r1", service: "meta", region: "r1", version: "v1" },
		...{ address: "meta-r1", disabled: false, established: true, predecessorUid: "" },
		...{ storageIncarnation: "two", wantedVersion: "", recovering: true },
	};
	const recovering = [{ meta, servers: [] }];
	const calls: string[] = [];
	const reports = new RegistryReports({
		...{ runtime, logger: silentLogger, sources: { recovering: () => [...recovering] } },
		report: async () => {
			calls.push("report");
		},
		registerAgain: async () => {
			calls.push("register again");
			if (fails.failing > 0) {
				fails.failing -= 1;
				throw new ConnectError("the request was lost", Code.Unavailable);
			}
		},
	});
	return { runtime, reports, recovering, calls };
}

describe("a meta deployment that was restored", () => {
	it("registers again, under its own uid, what registered since the backup", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1");
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		const { uid } = beta.registry.self;
		const after = await restore(lab, meta, backup);
		await whenComplete(after, alpha, beta);
		expect((await deployments(after)).get("beta-r1")).toBe(uid);
		expect(alpha.registry.byUid(uid)?.name).toBe("beta-r1");
		expect(beta.registry.self.uid).toBe(uid);
		expect(beta.registry.state.kind).toBe("registered");
	});

	it("registers under its own uid a deployment that was down, once that starts", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await beta.stop();
		await alpha.stop();
		const after = await restore(lab, meta, backup);
		const again = await lab.start("beta", "r1", { backend: beta.backend });
		expect(again.registry.self.uid).toBe(uid);
		expect(again.registry.self.predecessorUid).toBe("");
		expect((await deployments(after)).get("beta-r1")).toBe(uid);
	});

	it("waits for a deployment that others know, and is not complete until it has reported", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		await beta.stop();
		let isForgotten = false;
		alpha.registry.onChange(() => {
			isForgotten ||= alpha.registry.byUid(uid) === undefined;
		});
		const after = await restore(lab, meta, backup);
		const { registry } = after;
		const awaited = [`beta-r1 (${uid})`];
		const isAwaited = () => registry.awaited.join() === awaited.join();
		await vi.waitFor(() => expect(registry.isComplete || isAwaited()).toBe(true), {
			timeout: 300_000,
		});
		expect(registry.awaited).toEqual(awaited);
		expect(registry.isComplete).toBe(false);
		await whenKnown(alpha.registry, () => !alpha.registry.isComplete);
		await expect(alpha.registry.isDeleted(uid)).rejects.toThrow(
			"were restored and are not complete",
		);
		await lab.start("beta", "r1", { backend: beta.backend });
		await whenComplete(after, alpha);
		expect(after.registry.awaited).toEqual([]);
		expect(isForgotten).toBe(false);
		expect(await alpha.registry.isDeleted(uid)).toBe(false);
	});

	it("is not complete before anyone has reported, though its backup has no other deployment", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1", { storageIncarnation: "one" });
		const backup = await backUp(meta.backend);
		const alpha = await lab.start("alpha", "r1");
		const { uid } = alpha.registry.self;
		await alpha.stop();
		const after = await restore(lab, meta, backup);
		await vi.waitFor(() => expect(after.registry.awaited).toEqual(["the first deployment"]), {
			timeout: 300_000,
		});
		expect(await isComplete(after)).toBe(false);
		const again = await lab.start("alpha", "r1", { backend: alpha.backend });
		await whenComplete(after, again);
		expect(after.registry.awaited).toEqual([]);
		expect(again.registry.self.uid).toBe(uid);
	});

	it("is not complete when only a server of its own has reported", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1", { storageIncarnation: "one" });
		const backup = await backUp(meta.backend);
		const alpha = await lab.start("alpha", "r1");
		await alpha.stop();
		const after = await restore(lab, meta, backup);
		const storage = { backend: after.backend, runtime: systemRuntime };
		const { uid, predecessorUid } = after.registry.self;
		for (const own of [uid, predecessorUid]) {
			await acceptReport(storage, own, { deployments: [], deleted: [], knownUids: [] });
		}
		const known = { known: () => [], isDeleted: () => false };
		expect(await completeRecovery({ ...storage, ...known })).toEqual([]);
		expect(await isComplete(after)).toBe(false);
		const again = await lab.start("alpha", "r1", { backend: alpha.backend });
		await whenComplete(after, again);
	});

	it("takes back a deployment of which nobody else knew, though it is complete", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		await alpha.stop();
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await beta.stop();
		const after = await restore(lab, meta, backup);
		const knowing = await lab.start("alpha", "r1", { backend: alpha.backend });
		await whenComplete(after, knowing);
		expect((await deployments(after)).get("beta-r1")).toBeUndefined();
		const again = await lab.start("beta", "r1", { backend: beta.backend });
		expect(again.registry.self).toMatchObject({ uid, predecessorUid: "" });
		expect((await deployments(after)).get("beta-r1")).toBe(uid);
		await whenKnown(knowing.registry, () => knowing.registry.byUid(uid) !== undefined);
	});

	it("takes back a deployment that knows of more deletions than one commit takes, though it is complete", async () => {
		const storage = {
			backend: createMemoryBackend({ runtime: systemRuntime }),
			runtime: systemRuntime,
		};
		const uids = Array.from({ length: 250 }, () => newUlid(systemRuntime));
		const deleted = uids.map((uid) =>
			resourceOf(DeletedDeployment, {
				id: idOf(DeletedDeployment, deletedDeploymentName(uid)),
				data: create(DeletedDeploymentSchema, { uid }),
			}),
		);
		const uid = newUlid(systemRuntime);
		const own = resourceOf(Deployment, {
			id: { ...idOf(Deployment, "beta-r1"), uid },
			data: create(DeploymentSchema, { service: "beta", region: "r1" }),
		});
		await acceptReport(storage, uid, { deployments: [own], deleted, knownUids: [] });
		expect(await deletions(storage)).toHaveLength(uids.length);
		expect(await deployments(storage)).toEqual(new Map([["beta-r1", uid]]));
	});

	it("does not wait for a deployment whose Deployment operators delete", async () => {
		const { lab, meta, alpha } = await begun();
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		await beta.stop();
		const after = await restore(lab, meta, await backUp(meta.backend));
		await vi.waitFor(() => expect(after.registry.awaited).toEqual([`beta-r1 (${uid})`]), {
			timeout: 300_000,
		});
		await lab.delete(after, "beta-r1");
		await whenComplete(after, alpha);
		expect(await alpha.registry.isDeleted(uid)).toBe(true);
		expect(alpha.registry.byUid(uid)).toBeUndefined();
	});

	it("knows again what was deleted since the backup, and removes it", async () => {
		const { lab, meta, alpha, beta, uid, backup } = await deletedSinceBackup();
		const after = await restore(lab, meta, backup);
		await whenComplete(after, alpha);
		expect(await deletions(after)).toContain(uid.toLowerCase());
		expect(alpha.registry.byUid(uid)).toBeUndefined();
		await vi.waitFor(
			async () => expect([...(await deployments(after)).keys()]).not.toContain("beta-r1"),
			{
				timeout: 300_000,
			},
		);
		const again = await lab.start("beta", "r1", { backend: beta.backend });
		expect(again.registry.self.predecessorUid).toBe(uid);
	});

	it("removes a deployment of whose deletion it is told when it is complete", async () => {
		const { lab, meta, alpha } = await begun();
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await beta.stop();
		await whenKnown(meta.registry, () => meta.registry.byUid(uid) !== undefined);
		const record = resourceOf(DeletedDeployment, {
			id: idOf(DeletedDeployment, deletedDeploymentName(uid)),
			data: create(DeletedDeploymentSchema, { uid, service: "beta", region: "r1" }),
		});
		const storage = { backend: meta.backend, runtime: systemRuntime };
		await acceptReport(storage, alpha.registry.self.uid, {
			...{ deployments: [], deleted: [record], knownUids: [] },
		});
		await vi.waitFor(
			async () => expect([...(await deployments(meta)).keys()]).not.toContain("beta-r1"),
			{ timeout: 300_000 },
		);
		expect(await deletions(meta)).toEqual([uid.toLowerCase()]);
	});

	it("has the newest of what operators have set and what deployments have announced", async () => {
		const { lab, meta, alpha: before } = await begun();
		const beta = await lab.start("beta", "r1");
		const backup = await backUp(meta.backend);
		await before.stop();
		const alpha = await lab.start("alpha", "r1", {
			...{ backend: before.backend, types: [Thing, ThingV2], version: "v2" },
		});
		await alpha.references.until("announced", AbortSignal.timeout(300_000));
		await lab.change(meta, "beta-r1", { disabled: true });
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.disabled === true);
		const after = await restore(lab, meta, backup);
		await whenComplete(after, alpha, beta);
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1")?.version === "v2");
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.disabled === true);
		await lab.change(after, "beta-r1", { disabled: false });
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.disabled === false);
	});

	it("has what a deployment has announced since, though another one has reported something else later", async () => {
		const { lab, meta, alpha } = await begun();
		await alpha.references.until("announced", AbortSignal.timeout(300_000));
		const beta = await lab.start("beta", "r1");
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		await beta.stop();
		const backup = await backUp(meta.backend);
		await alpha.stop();
		const after = await restore(lab, meta, backup);
		const reported = Promise.withResolvers<void>();
		const info: Logger["info"] = (_, text) =>
			text.startsWith("reported to a meta deployment") && reported.resolve();
		const again = await lab.start("alpha", "r1", {
			...{ backend: alpha.backend, logger: { ...silentLogger, info } },
		});
		await again.references.until("announced", AbortSignal.timeout(300_000));
		await reported.promise;
		expect(await versionOf(after, "alpha-r1")).toBe("v1");
		const storage = { backend: after.backend, runtime: systemRuntime };
		const deployments = [await withOlderVersion(after, "alpha-r1")];
		await acceptReport(storage, beta.registry.self.uid, {
			deployments,
			deleted: [],
			knownUids: [],
		});
		await whenComplete(after, again);
		await vi.waitFor(async () => expect(await versionOf(after, "alpha-r1")).toBe("v1"), {
			timeout: 300_000,
		});
	});

	it("keeps what a deployment has announced since, when its report arrives once more", async () => {
		const { meta, alpha } = await begun();
		await alpha.references.until("announced", AbortSignal.timeout(300_000));
		const storage = { backend: meta.backend, runtime: systemRuntime };
		const deployments = [await withOlderVersion(meta, "alpha-r1")];
		await acceptReport(storage, alpha.registry.self.uid, {
			...{ deployments, deleted: [], knownUids: [] },
		});
		expect(await versionOf(meta, "alpha-r1")).toBe("v1");
	});

	it("keeps the version of the active schema, though a server with another one reports", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1", { storageIncarnation: "one" });
		const reported = Promise.withResolvers<void>();
		const info: Logger["info"] = (_, text) =>
			text.startsWith("reported to a meta deployment") && reported.resolve();
		const old = await lab.start("alpha", "r1", { logger: { ...silentLogger, info } });
		await old.references.until("announced", AbortSignal.timeout(300_000));
		const next = await lab.start("alpha", "r1", {
			...{ backend: old.backend, address: "alpha-next" },
			...{ types: [Thing, ThingV2], version: "v2" },
		});
		await next.references.until("announced", AbortSignal.timeout(300_000));
		await next.stop();
		const after = await restore(lab, meta, await backUp(meta.backend));
		await reported.promise;
		expect(await versionOf(after, "alpha-r1")).toBe("v2");
	});

	it("keeps both when the name of a deleted deployment was used again", async () => {
		const { lab, meta, alpha } = await begun();
		const beta = await lab.start("beta", "r1");
		const before = beta.registry.self.uid;
		await beta.stop();
		const backup = await backUp(meta.backend);
		await lab.delete(meta, "beta-r1");
		await whenDeleted(alpha, before);
		const another = await lab.start("beta", "r1", { types: [Widget, WidgetV2], version: "v1" });
		const { uid, name } = another.registry.self;
		expect(name).toBe("beta-r1");
		// Otherwise it is not missed: see the limits of a recovery.
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.uid === uid);
		const after = await restore(lab, meta, backup);
		await whenComplete(after, alpha, another);
		const [renamed = ""] = [...(await deployments(after))].find((each) => each[1] === uid) ?? [];
		expect(renamed).not.toBe("");
		expect(alpha.registry.find("beta", "r1")?.uid).toBe(uid);
		await lab.change(after, renamed, { wantedVersion: "v2" });
		await whenKnown(alpha.registry, () => alpha.registry.byUid(uid)?.version === "v2");
	});

	it("takes over what a restore before has begun", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const again = await backUp(meta.backend);
		const first = await restore(lab, meta, backup);
		await whenComplete(first, alpha);
		const second = await restore(lab, first, again, "three");
		await whenComplete(second, alpha);
		const { self } = second.registry;
		expect([self.predecessorUid, ...(self.otherPredecessorUids ?? [])]).toContain(
			first.registry.self.uid,
		);
	});

	it("goes on with the recovery when it stops in between", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1");
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		await beta.stop();
		const after = await restore(lab, meta, backup);
		await vi.waitFor(() => expect(after.registry.awaited).toHaveLength(1), { timeout: 300_000 });
		const again = await restore(lab, after, after.backend);
		expect(again.registry.self.uid).toBe(after.registry.self.uid);
		expect(await isComplete(again)).toBe(false);
		await lab.start("beta", "r1", { backend: beta.backend });
		await whenComplete(again, alpha);
	});

	it("is registered with again until that succeeds, though it is complete once all have reported", async () => {
		const { runtime, reports, recovering, calls } = reporting({ failing: 2 });
		reports.begin(new AbortController().signal);
		recovering.pop();
		await runtime.scheduler.advance(60_000);
		expect(calls).toEqual(["report", ...Array(3).fill("register again")]);
	});

	it("is registered with once more when it is complete, until that succeeds", async () => {
		const fails = { failing: 0 };
		const { runtime, reports, recovering, calls } = reporting(fails);
		const { signal } = new AbortController();
		reports.begin(signal);
		await runtime.scheduler.advance(60_000);
		reports.begin(signal);
		await runtime.scheduler.advance(60_000);
		expect(calls.splice(0)).toEqual(["report", "register again"]);
		recovering.pop();
		fails.failing = 2;
		reports.begin(signal);
		reports.begin(signal);
		await runtime.scheduler.advance(60_000);
		expect(calls).toEqual(Array(3).fill("register again"));
	});

	it("listens no more often for the end of the server, the longer it waits", async () => {
		const runtime = seededRuntime({ seed: 1 });
		const end = new AbortController();
		const recovery = new OwnRecovery({
			...{ backend: createMemoryBackend({ runtime }), runtime, logger: silentLogger },
			...{ known: () => [], isDeleted: () => false, hasDeleted: () => false },
			display: (uid) => uid,
			client: () =>
				createClient(
					ResourceService,
					createInProcessTransport(() => {}, runtime),
				),
			areOthersRead: () => false,
		});
		const run = recovery.run(end.signal);
		const listeners = () => getEventListeners(end.signal, "abort").length;
		await runtime.scheduler.advance(1_000);
		const before = listeners();
		await runtime.scheduler.advance(600_000);
		expect(listeners()).toBe(before);
		end.abort();
		await runtime.scheduler.run(run);
		expect(listeners()).toBe(0);
	});

	it("waits for a deployment that only another server of the one that reports has read and stored", async () => {
		const { lab, meta, alpha } = await begun();
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await whenStored(alpha.backend, ({ id }) => id?.uid === uid);
		await Promise.all([alpha.stop(), beta.stop()]);
		const after = await restore(lab, meta, backup);
		const { backend, reads } = lagging(alpha.backend);
		const another = await lab.start("alpha", "r1", { backend, address: "alpha-b" });
		expect(another.registry.byUid(uid)).toBeUndefined();
		await vi.waitFor(() => expect(after.registry.awaited).toEqual([`beta-r1 (${uid})`]), {
			timeout: 300_000,
		});
		expect(reads.strong).toBeGreaterThan(1);
		expect((await deployments(after)).get("beta-r1")).toBe(uid);
		await lab.start("beta", "r1", { backend: beta.backend });
		await whenComplete(after, another);
	});

	it("knows of a deletion that only another server of the one that reports has read and stored", async () => {
		const { lab, meta, alpha, uid, backup } = await deletedSinceBackup();
		await alpha.stop();
		const after = await restore(lab, meta, backup);
		const { backend } = lagging(alpha.backend);
		const another = await lab.start("alpha", "r1", { backend, address: "alpha-b" });
		await whenComplete(after, another);
		expect(await deletions(after)).toContain(uid.toLowerCase());
		await vi.waitFor(
			async () => expect([...(await deployments(after)).values()]).not.toContain(uid),
			{
				timeout: 300_000,
			},
		);
	});

	it("is one of several servers, and any of them takes the reports", async () => {
		const lab = new RegistryLab();
		const metas = ["meta-a", "meta-b"];
		const start = (address: string, options: StartOptions) =>
			lab.start("meta", "r1", { address, metas, ...options });
		const meta = await start("meta-a", { storageIncarnation: "one" });
		const alpha = await lab.start("alpha", "r1", { metas });
		const backup = await backUp(meta.backend);
		const beta = await lab.start("beta", "r1", { metas });
		const { uid } = beta.registry.self;
		await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1") !== undefined);
		await meta.stop();
		const restored = { backend: backup, storageIncarnation: "two" };
		const [a, b] = await Promise.all([start("meta-a", restored), start("meta-b", restored)]);
		expect(a.registry.self.uid).toBe(b.registry.self.uid);
		await whenComplete(a, b, alpha, beta);
		expect((await deployments(b)).get("beta-r1")).toBe(uid);
	});
});

describe("a meta deployment that was started with an empty storage", () => {
	it("takes back a deployment that registers before it has registered itself", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1", { storageIncarnation: "one" });
		const beta = await lab.start("beta", "r1");
		const { uid } = beta.registry.self;
		await Promise.all([beta.stop(), meta.stop()]);
		const registered = Promise.withResolvers<void>();
		const memory = createMemoryBackend({ runtime: systemRuntime });
		const backend = decorateBackend(memory, {
			commit: async (mutations, options) => {
				if (mutations.some((each) => each.op === "put" && each.resource.id?.name === "meta-r1")) {
					await registered.promise;
				}
				return memory.commit(mutations, options);
			},
		});
		await lab.begin("meta", "r1", { storageIncarnation: "two", backend });
		const again = await lab.begin("beta", "r1", { backend: beta.backend });
		const { registry } = again;
		await vi.waitFor(
			() => expect(registry.state).not.toEqual({ kind: "registering", lastProblem: "" }),
			{ timeout: 300_000 },
		);
		expect(registry.state).toMatchObject({
			lastProblem: expect.stringContaining(`no meta deployment knows deployment ${uid}`),
		});
		registered.resolve();
		await again.controlled;
		expect(registry.self).toMatchObject({ uid, predecessorUid: "" });
	});
});
