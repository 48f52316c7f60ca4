import { create } from "@bufbuild/protobuf";
import { type Client, ConnectError } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { defineType, idOf, resourceOf, tenancyOf, typeOf } from "@plinth/resource";
import { type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { ThingSchema as ThingV2Schema } from "../../testdata/gen/acme/alpha/v2/thing_pb.ts";
import { Thing } from "../../testdata/types.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { readDeploymentRecord } from "../succession/deployment-record.ts";
import { recordDeletedDeployments } from "./deleted-deployments.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import type { MetaSource } from "./meta-source.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import { giveUpUid, keepUid, openIdentity } from "./own-identity.ts";
import { register } from "./registration.ts";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";

const names = (registry: {
	deployments(): readonly { readonly name: string; readonly disabled: boolean }[];
}) =>
	registry
		.deployments()
		.map(({ name }) => name)
		.sort();

type MetaClient = Client<typeof ResourceService>;

/** Registers a server of alpha, like its first start. */
function registerAlpha(
	client: MetaClient,
	backend: StorageBackend | undefined,
	overrides: Partial<DeploymentConfiguration> = {},
	metas: readonly MetaSource[] = [{ address: "meta-r1", client }],
	logger: Logger = silentLogger,
) {
	if (backend === undefined) {
		throw new Error("no storage");
	}
	return register({
		deployment: {
			service: "alpha",
			region: "r1",
			version: "v1",
			address: "http://alpha-r1",
			...overrides,
		},
		descriptor: new ServiceDescriptor({ types: [Thing], service: "alpha" }),
		identity: { backend, runtime: systemRuntime },
		metas: metas.map((meta) => [meta]),
		servedUid: undefined,
		isRunningAt: () => false,
		known: () => [],
		reportTo: async () => ({ deployments: [], deleted: [], knownUids: [] }),
		logger,
		callTimeoutMs: 500,
	});
}

/** A client that waits before writes of a resource, or after lists, until it is released. */
function held(client: MetaClient, method: "list" | "write", name?: string) {
	const reached = Promise.withResolvers<void>();
	const released = Promise.withResolvers<void>();
	const wait = async () => {
		reached.resolve();
		await released.promise;
	};
	const waiting: MetaClient = {
		...client,
		list: async (...call) => {
			const response = await client.list(...call);
			if (method === "list") {
				await wait();
			}
			return response;
		},
		write: async (request, options) => {
			if (method === "write" && (name === undefined || request.resource?.id?.name === name)) {
				await wait();
			}
			return client.write(request, options);
		},
	};
	return { client: waiting, reached: reached.promise, release: () => released.resolve() };
}

async function namesAt(client: MetaClient) {
	const { resources } = await client.list({
		type: typeOf(Deployment.type),
		tenancy: tenancyOf(),
	});
	return resources.map(({ id }) => id?.name).sort();
}

describe("a registry", () => {
	it("registers a meta deployment with itself, and others with it", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const alpha = await lab.start("alpha", "r1");
		const beta = await lab.start("beta", "r1");
		const all = ["alpha-r1", "beta-r1", "meta-r1"];
		await whenKnown(alpha.registry, () => names(alpha.registry).length === 3);
		for (const { registry } of [meta, alpha, beta]) {
			await whenKnown(registry, () => names(registry).length === 3);
			expect(names(registry)).toEqual(all);
		}
		expect(beta.registry.find("alpha", "r1")?.uid).toBe(alpha.registry.self.uid);
		expect(beta.registry.findOwner("alpha", undefined, "")?.name).toBe("alpha-r1");
	});

	it("finds the deployments of all meta deployments through the registry view of one", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1", { metas: [] });
		await lab.start("meta", "r2", { metas: ["meta-r1"] });
		// The first one does not know the second one, which registers with itself.
		const alpha = await lab.start("alpha", "r2", { metas: ["meta-r2", "meta-r1"] });
		const beta = await lab.start("beta", "r1", { metas: ["meta-r1", "meta-r2"] });
		await whenKnown(beta.registry, () => names(beta.registry).length === 4);
		expect(beta.registry.find("alpha", "r2")?.uid).toBe(alpha.registry.self.uid);
	});

	it("keeps its uid across restarts, and its registry view while the meta service is unreachable", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		await lab.start("alpha", "r1");
		const before = await lab.start("beta", "r1");
		await before.stop();
		const after = await lab.start("beta", "r1", { backend: before.backend });
		expect(after.registry.self.uid).toBe(before.registry.self.uid);
		await meta.stop();
		expect(names(after.registry)).toEqual(["alpha-r1", "beta-r1", "meta-r1"]);
		await expect(after.registry.isDeleted(before.registry.self.uid)).rejects.toThrow("is down");
	});

	it("is incomplete until every meta deployment has been read", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1", { metas: [] });
		const meta2 = await lab.start("meta", "r2", { metas: [] });
		const alpha = await lab.start("alpha", "r2", { metas: ["meta-r2"] });
		await meta2.stop();
		const { registry } = await lab.start("beta", "r1", { metas: ["meta-r1", "meta-r2"] });
		expect(registry.find("alpha", "r2")).toBeUndefined();
		expect(registry.isComplete).toBe(false);
		const again = await lab.start("meta", "r2", { metas: [], backend: meta2.backend });
		await whenKnown(registry, () => registry.isComplete);
		expect(registry.find("alpha", "r2")?.uid).toBe(alpha.registry.self.uid);
		await again.stop();
		expect(registry.isComplete).toBe(true);
	});

	it("is not ready before a meta deployment responds", async () => {
		const lab = new RegistryLab();
		const alpha = await lab.begin("alpha", "r1");
		const ready = alpha.registry.ready(AbortSignal.timeout(300_000));
		expect(alpha.registry.state.kind).toBe("registering");
		await lab.start("meta", "r1");
		await ready;
		expect(alpha.registry.state.kind).toBe("registered");
	});

	it("learns from the permanent record that it was deleted, and registers as its own successor", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const alpha = await lab.start("alpha", "r1");
		const beta = await lab.start("beta", "r1");
		const { uid } = alpha.registry.self;
		expect(await beta.registry.isDeleted(uid)).toBe(false);
		await lab.delete(meta, "alpha-r1");
		await whenKnown(alpha.registry, () => alpha.registry.state.kind === "deleted");
		expect(await beta.registry.isDeleted(uid)).toBe(true);
		const record = idOf(DeletedDeployment, deletedDeploymentName(uid));
		const refused = await meta.client.delete({ id: record }).catch(ConnectError.from);
		expect(refused).toBeInstanceOf(ConnectError);
		await alpha.stop();
		const again = await lab.begin("alpha", "r1", { backend: alpha.backend });
		await again.registry.ready(AbortSignal.timeout(300_000));
		expect(again.registry.self).toMatchObject({
			name: "alpha-r1",
			predecessorUid: uid,
			established: false,
		});
		expect(again.registry.self.uid).not.toBe(uid);
	});

	it("learns that it was deleted even if the record can't be read at first", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const alpha = await lab.start("alpha", "r1");
		lab.failingReads = 2;
		await lab.delete(meta, "alpha-r1");
		await whenKnown(alpha.registry, () => alpha.registry.state.kind === "deleted");
		expect(lab.failingReads).toBe(0);
	});

	it("registers a restored storage as a new deployment beside the old one", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1");
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const before = await lab.start("alpha", "r1", { backend, storageIncarnation: "one" });
		await before.stop();
		const after = await lab.start("alpha", "r1", { backend, storageIncarnation: "two" });
		const { self } = after.registry;
		expect(self).toMatchObject({ name: "alpha-r1-2", predecessorUid: before.registry.self.uid });
		const beta = await lab.start("beta", "r1");
		expect(beta.registry.find("alpha", "r1")?.uid).toBe(self.uid);
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1")?.established === true);
	});

	it("adopts the registration of an earlier start that did not record the uid", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1");
		const first = await lab.start("alpha", "r1", { storageIncarnation: "one" });
		await first.stop();
		const again = await lab.start("alpha", "r1", { storageIncarnation: "one" });
		expect(again.registry.self.uid).toBe(first.registry.self.uid);
		expect((await readDeploymentRecord(again.backend))?.uid).toBe(first.registry.self.uid);
	});

	it("registers servers of one storage that start concurrently as one deployment", async () => {
		const lab = new RegistryLab();
		const { client } = await lab.start("meta", "r1");
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const late = held(client, "list");
		const second = registerAlpha(late.client, backend, { address: "http://moved" });
		await late.reached;
		const { registered } = await registerAlpha(client, backend);
		late.release();
		expect((await second).registered).toEqual({ ...registered, address: "http://moved" });
		expect((await readDeploymentRecord(backend))?.uid).toBe(registered.uid);
		expect(await namesAt(client)).toEqual(["alpha-r1", "meta-r1"]);
	});

	it("keeps one of two deployments that servers of one storage have registered under different names", async () => {
		const lab = new RegistryLab();
		const { client } = await lab.start("meta", "r1");
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const late = held(client, "list");
		const second = registerAlpha(late.client, backend, { name: "other" });
		await late.reached;
		const { registered } = await registerAlpha(client, backend);
		late.release();
		await expect(second).rejects.toThrow("another server of this storage registers it");
		expect(await namesAt(client)).toEqual(["alpha-r1", "meta-r1", "other"]);
		const again = await registerAlpha(client, backend, { name: "other" });
		expect(again.registered.uid).toBe(registered.uid);
		expect(await namesAt(client)).toEqual(["alpha-r1", "meta-r1"]);
	});

	it("keeps one of two deployments that servers of one storage have registered at different meta deployments", async () => {
		const lab = new RegistryLab();
		const here = await lab.start("meta", "r1", { metas: [] });
		const there = await lab.start("meta", "r2", { metas: [] });
		const backend = createMemoryBackend({ runtime: systemRuntime });
		// It crashes before it records the uid; the next start does not reach that meta deployment.
		const crashing = decorateBackend(backend, {
			commit: () => Promise.reject(new Error("crashed")),
		});
		await openIdentity({ backend, runtime: systemRuntime });
		await expect(registerAlpha(here.client, crashing)).rejects.toThrow("crashed");
		const { registered } = await registerAlpha(there.client, backend);
		const metas = [there, here].map(({ client }, at) => ({ address: `meta-${at}`, client }));
		const again = await registerAlpha(here.client, backend, {}, metas);
		expect(again.registered.uid).toBe(registered.uid);
		expect(await namesAt(here.client)).toEqual(["meta-r1"]);
		expect(await namesAt(there.client)).toEqual(["alpha-r1", "meta-r2"]);
	});

	it("registers two storages concurrently as two deployments", async () => {
		const lab = new RegistryLab();
		const { client } = await lab.start("meta", "r1");
		const [one, other] = [1, 2].map(() => createMemoryBackend({ runtime: systemRuntime }));
		const late = held(client, "write", "alpha-r1");
		const second = registerAlpha(late.client, other);
		await late.reached;
		const { registered } = await registerAlpha(client, one);
		late.release();
		await expect(second).rejects.toThrow("another server registered alpha-r1");
		const warnings: unknown[] = [];
		const again = await registerAlpha(client, other, {}, undefined, {
			...silentLogger,
			warn: (fields, text) => warnings.push({ fields, text }),
		});
		expect(again.registered.name).toBe("alpha-r1-2");
		expect(warnings).toMatchObject([
			{
				fields: { others: [`alpha-r1 (${registered.uid})`] },
				text: expect.stringContaining("alpha in r1 has another deployment already"),
			},
		]);
		expect((await registerAlpha(client, one)).registered).toEqual(registered);
	});

	it("does not record a uid again that another server of the storage has given up", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const { client } = meta;
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const { registered } = await registerAlpha(client, backend);
		const listing = held(client, "list");
		const late = registerAlpha(listing.client, backend);
		await listing.reached;
		await lab.delete(meta, "alpha-r1");
		const writing = held(client, "write", "alpha-r1");
		const successor = registerAlpha(writing.client, backend);
		await writing.reached;
		listing.release();
		await expect(late).rejects.toThrow("another server of this storage registers it");
		writing.release();
		expect((await successor).registered.predecessorUid).toBe(registered.uid);
		expect((await readDeploymentRecord(backend))?.uid).toBe((await successor).registered.uid);
	});

	it("does not record a uid again that was given up, even if another one was given up since", async () => {
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const options = { backend, runtime: systemRuntime };
		for (const uid of ["first", "second"]) {
			expect((await keepUid(options, uid)).uid).toBe(uid);
			await giveUpUid(options, uid);
		}
		expect((await keepUid(options, "first")).uid).toBe("");
	});

	it("announces nothing for a successor that reuses the name of a deleted deployment", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const alpha = await lab.start("alpha", "r1");
		await lab.delete(meta, "alpha-r1");
		const again = await lab.start("alpha", "r1", { backend: alpha.backend });
		await again.references.until("announced", AbortSignal.timeout(300_000));
		await expect(alpha.registry.announce("v2")).rejects.toThrow("no Deployment alpha-r1");
		const beta = await lab.start("beta", "r1");
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1") !== undefined);
		expect(beta.registry.find("alpha", "r1")).toMatchObject({ version: "v1", established: true });
	});

	it("records a deletion on a lagging server", async () => {
		const memory = createMemoryBackend({ runtime: systemRuntime });
		const resource = resourceOf(Deployment, {
			id: { ...idOf(Deployment, "alpha-r1"), uid: "01A" },
			data: create(DeploymentSchema, { service: "alpha", region: "r1" }),
		});
		const put = { op: "put", resource, expectedVersion: "" } as const;
		const first = (await memory.commit([put])).resources[0];
		const [last] = first
			? (await memory.commit([{ ...put, resource: first, expectedVersion: first.version }]))
					.resources
			: [];
		const lagging: StorageBackend = decorateBackend(memory, {
			lookup: async (id, options) =>
				options?.consistency !== "strong" && first?.id?.name === id.name
					? first
					: memory.lookup(id, options),
		});
		const meta = recordDeletedDeployments(lagging, systemRuntime);
		const expectedVersion = last?.version ?? "";
		expect(expectedVersion).not.toBe(first?.version);
		await meta.commit([{ op: "delete", id: idOf(Deployment, "alpha-r1"), expectedVersion }]);
		const record = idOf(DeletedDeployment, deletedDeploymentName("01A"));
		expect((await memory.read(record)).id?.name).toBe(record.name);
	});

	it("tells which imported versions no deployment serves", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1");
		const { registry } = await lab.start("beta", "r1");
		expect(registry.importProblems).toEqual([]);
		const alpha = await lab.start("alpha", "r1", { types: [defineType(ThingV2Schema)] });
		await whenKnown(registry, () => registry.importProblems.length > 0);
		expect(registry.importProblems).toEqual([
			"this service imports alpha v1, which no deployment serves: alpha has v2",
		]);
		await alpha.stop();
		await lab.start("alpha", "r1", { backend: alpha.backend });
		await whenKnown(registry, () => registry.importProblems.length === 0);
	});

	it("marks disabled deployments, and does not call them", async () => {
		const lab = new RegistryLab();
		const meta = await lab.start("meta", "r1");
		const alpha = await lab.start("alpha", "r1");
		const beta = await lab.start("beta", "r1");
		const { uid } = alpha.registry.self;
		await lab.change(meta, "alpha-r1", { disabled: true });
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1")?.disabled === true);
		expect(() => beta.registry.client(uid)).toThrow("(alpha-r1) is disabled");
		expect(await beta.registry.isDeleted(uid)).toBe(false);
	});
});
