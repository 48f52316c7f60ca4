import { create } from "@bufbuild/protobuf";
import { idOf, newUlid, referenceTo } from "@plinth/resource";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { ResourceShadow, readRecord, recordOf } from "../shadow/shadow-records.ts";
import {
	deploymentRecord,
	readDeploymentRecord,
	updateDeploymentRecord,
} from "../succession/deployment-record.ts";
import { Deployment } from "./meta-types.ts";
import { giveUpUid, keepUid } from "./own-identity.ts";
import { RegistryLab, type Started, whenKnown } from "./registry-lab.fixture.ts";

/** Waits until the storage has a complete registry view that contains the deployments. */
async function whenStored({ backend, registry }: Started, ...deployments: string[]) {
	await whenKnown(registry, () => {
		const known = registry.deployments().map(({ name }) => name);
		return registry.isComplete && deployments.every((name) => known.includes(name));
	});
	await vi.waitFor(
		async () => {
			expect(await readRecord(backend, "registry")).toBeDefined();
			const known = registry.deployments().map(({ uid }) => uid);
			const { resources } = await backend.list({
				type: ResourceShadow.type,
				tenancy: { partition: "", namespace: "" },
				namePrefix: "registry-",
			});
			const stored = resources.map(recordOf).flatMap(({ record }) => {
				const isEntry = record.case === "registryEntry";
				return isEntry ? (record.value.resource?.id?.uid ?? "") : [];
			});
			expect(stored).toEqual(expect.arrayContaining(known));
		},
		{ timeout: 300_000 },
	);
}

/** A meta deployment, `alpha` with the thing `a`, and `beta`, whose registry views are stored. */
async function three(options: { readonly storageIncarnation?: string } = {}) {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1");
	const beta = await lab.start("beta", "r1", options);
	for (const name of ["a", "b"]) {
		await alpha.client.write({ resource: make(Thing, name, create(ThingSchema)) });
	}
	await whenStored(beta, "alpha-r1", "beta-r1");
	return { lab, meta, alpha, beta };
}

function widget(name: string, thing: string) {
	const data = create(WidgetSchema, { needs: referenceTo({ type: Thing.type, name: thing }) });
	return make(Widget, name, data);
}

/** Whether a start reaches `ready` before it has failed to register some times. */
async function becomesReady(lab: RegistryLab, backend: StorageBackend, incarnation?: string) {
	const started = await lab.begin("beta", "r1", {
		backend,
		...(incarnation && { storageIncarnation: incarnation }),
	});
	const isReady = await started.registry.ready(AbortSignal.timeout(1_000)).then(
		() => true,
		() => false,
	);
	await started.stop();
	return isReady;
}

describe("a deployment that can't reach a meta deployment", () => {
	it("is up to date again once its watches have resumed, though nothing has changed", async () => {
		const { lab, meta, beta } = await three();
		const { registry } = beta;
		await whenKnown(registry, () => registry.outdatedSince === undefined);
		await meta.stop();
		await whenKnown(registry, () => registry.outdatedSince !== undefined);
		await lab.start("meta", "r1", { backend: meta.backend });
		await whenKnown(registry, () => registry.outdatedSince === undefined);
		expect(registry.isComplete).toBe(true);
	});

	it("starts with the stored registry view, and says how old it is", async () => {
		const { lab, meta, beta } = await three();
		const { uid } = beta.registry.self;
		await beta.stop();
		await meta.stop();
		const again = await lab.start("beta", "r1", { backend: beta.backend });
		const { registry, client } = again;
		expect(registry.self).toMatchObject({ uid, name: "beta-r1" });
		expect(registry.state).toMatchObject({
			kind: "registering",
			lastProblem: expect.stringMatching(/meta-r1/),
		});
		expect(registry.isComplete).toBe(false);
		const ageMs = Date.now() - (registry.outdatedSince?.getTime() ?? 0);
		expect(ageMs).toBeGreaterThan(0);
		expect(ageMs).toBeLessThan(600_000);
		await client.write({ resource: widget("w", "a") });
		await expect(
			client.write({ resource: { ...widget("v", "a"), data: elsewhere() } }),
		).rejects.toThrow("a meta deployment can't be reached");
		await lab.start("meta", "r1", { backend: meta.backend });
		await whenKnown(registry, () => registry.isComplete && registry.state.kind === "registered");
		await whenKnown(registry, () => registry.outdatedSince === undefined);
	});

	it("does not start before it has ever read the registry, or was registered", async () => {
		const lab = new RegistryLab();
		const backend = createMemoryBackend({ runtime: systemRuntime });
		expect(await becomesReady(lab, backend)).toBe(false);
	});

	it("does not start with a restored storage", async () => {
		const { lab, meta, beta } = await three({ storageIncarnation: "one" });
		await beta.stop();
		await meta.stop();
		expect(await becomesReady(lab, beta.backend, "two")).toBe(false);
	});

	it("does not start as a successor that has not established its references", async () => {
		const { lab, meta, beta } = await three();
		await beta.stop();
		await meta.stop();
		const { backend } = beta;
		await updateDeploymentRecord(backend, systemRuntime, (record) => ({
			...record,
			predecessorUid: "01BEFORE",
			established: false,
		}));
		expect(await becomesReady(lab, backend)).toBe(false);
		await updateDeploymentRecord(backend, systemRuntime, (record) => ({
			...record,
			established: true,
		}));
		expect(await becomesReady(lab, backend)).toBe(true);
	});

	it("stops once it learns that it was deleted meanwhile, and then starts as a successor", async () => {
		const { lab, meta, beta } = await three();
		const { uid } = beta.registry.self;
		await beta.stop();
		await lab.delete(meta, "beta-r1");
		await meta.stop();
		const { backend } = beta;
		const alone = await lab.start("beta", "r1", { backend });
		expect(alone.registry.self.uid).toBe(uid);
		const metaAgain = await lab.start("meta", "r1", { backend: meta.backend });
		await whenKnown(alone.registry, () => alone.registry.state.kind === "deleted");
		await vi.waitFor(async () => expect((await readDeploymentRecord(backend))?.uid).toBe(""), {
			timeout: 300_000,
		});
		await alone.stop();
		await metaAgain.stop();
		expect(await becomesReady(lab, backend)).toBe(false);
		await lab.start("meta", "r1", { backend: meta.backend });
		const successor = await lab.begin("beta", "r1", { backend });
		await successor.registry.ready(AbortSignal.timeout(300_000));
		expect(successor.registry.self).toMatchObject({ predecessorUid: uid, established: false });
	});

	it("stops once another server has registered under another uid, and leaves that alone", async () => {
		const { lab, meta, beta } = await three();
		const { uid, name } = beta.registry.self;
		await beta.stop();
		await meta.stop();
		const { backend } = beta;
		const lag = Promise.withResolvers<void>();
		let isLagging = false;
		const lagging = decorateBackend(backend, {
			async *watchList(...call) {
				for await (const event of backend.watchList(...call)) {
					await (isLagging ? lag.promise : undefined);
					yield event;
				}
			},
		});
		const alone = await lab.start("beta", "r1", { backend: lagging });
		expect(alone.registry.self.uid).toBe(uid);
		isLagging = true;
		// Another server learns that the deployment was deleted, and registers it again.
		const identity = { backend, runtime: systemRuntime };
		await giveUpUid(identity, uid);
		const next = newUlid(systemRuntime);
		const stored = await meta.backend.lookup(idOf(Deployment, name));
		if (stored?.id === undefined) {
			throw new Error("it is not registered");
		}
		const id = { ...stored.id, uid: next };
		const { version: expectedVersion } = stored;
		await meta.backend.commit([{ op: "delete", id: stored.id, expectedVersion }]);
		const registered = { ...stored, id, version: "" };
		await meta.backend.commit([{ op: "put", resource: registered, expectedVersion: "" }]);
		await keepUid(identity, next);
		await lab.start("meta", "r1", { backend: meta.backend });
		const { registry } = alone;
		await whenKnown(registry, () => registry.state.kind !== "registering");
		lag.resolve();
		await whenKnown(registry, () => registry.state.kind === "deleted");
		await alone.stop();
		expect((await readDeploymentRecord(backend))?.uid).toBe(next);
		expect(registry.self.uid).toBe(uid);
	});

	it("stops once if it learns in two ways that another server has given up its uid", async () => {
		const { lab, meta, beta } = await three();
		const { uid, name } = beta.registry.self;
		await beta.stop();
		await meta.stop();
		const { backend } = beta;
		const attempts = Promise.withResolvers<void>();
		let isHeld = false;
		let reads = 0;
		const held = decorateBackend(backend, {
			lookup: async (id, options) => {
				if (isHeld && id.name === deploymentRecord) {
					await attempts.promise;
					const read = await backend.lookup(id, options);
					reads += 1;
					return read;
				}
				return backend.lookup(id, options);
			},
		});
		const error = vi.fn();
		const logger = { ...silentLogger, error };
		const alone = await lab.start("beta", "r1", { backend: held, controls: false, logger });
		const { registry } = alone;
		expect(registry.self.uid).toBe(uid);
		expect(registry.state.kind).toBe("registering");
		// Attempts to register wait, until the index has what another server has recorded.
		isHeld = true;
		const identity = { backend, runtime: systemRuntime };
		await giveUpUid(identity, uid);
		const next = newUlid(systemRuntime);
		await keepUid(identity, next);
		await whenKnown(registry, () => registry.state.kind === "deleted");
		expect(reads).toBe(0);
		attempts.resolve();
		// The next attempt finds that the record has another uid. It ends before the server has stopped.
		await vi.waitFor(() => expect(reads).toBeGreaterThan(0), { timeout: 300_000 });
		await alone.stop();
		const logged = error.mock.calls.filter(
			([, message]) => message === `deployment ${name} was deleted`,
		);
		expect(logged).toHaveLength(1);
		expect(registry.state.kind).toBe("deleted");
		expect((await readDeploymentRecord(backend))?.uid).toBe(next);
	});

	it("stops once another server has given up its uid, though its index has never had that", async () => {
		const { lab } = await three();
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const lag = Promise.withResolvers<void>();
		let lags = true;
		const lagging = decorateBackend(backend, {
			async *watchList(query, options) {
				let isLoaded = false;
				for await (const event of backend.watchList(query, options)) {
					if (lags && isLoaded && query.type.kind === ResourceShadow.type.kind) {
						await lag.promise;
						throw new Error("the watch is behind");
					}
					yield event;
					isLoaded ||= event.kind === "end-of-snapshot";
				}
			},
		});
		const one = await lab.start("beta", "r2", { backend: lagging, controls: false });
		const { registry } = one;
		expect(registry.state.kind).toBe("registered");
		const identity = { backend, runtime: systemRuntime };
		await giveUpUid(identity, registry.self.uid);
		const next = newUlid(systemRuntime);
		await keepUid(identity, next);
		lags = false;
		lag.resolve();
		await vi.waitFor(() => expect(registry.state.kind).toBe("deleted"), { timeout: 20_000 });
		expect(one.failures).not.toEqual([]);
		expect((await readDeploymentRecord(backend))?.uid).toBe(next);
	});

	it("is refused by a deployment that has dropped it, and stops", async () => {
		const { lab, meta, alpha, beta } = await three();
		const { uid } = beta.registry.self;
		await beta.client.write({ resource: widget("w", "a") });
		await beta.stop();
		await lab.delete(meta, "beta-r1");
		await alpha.client.delete({ id: idOf(Thing, "a") });
		await meta.stop();
		const { backend } = beta;
		const alone = await lab.start("beta", "r1", { backend });
		await expect(alone.client.write({ resource: widget("v", "b") })).rejects.toThrow(
			`deployment ${uid} was deleted, and what it references is no longer kept`,
		);
		await whenKnown(alone.registry, () => alone.registry.state.kind === "deleted");
		await vi.waitFor(async () => expect((await readDeploymentRecord(backend))?.uid).toBe(""), {
			timeout: 300_000,
		});
		await vi.waitFor(async () => expect(await alpha.registry.isDeleted(uid)).toBe(true), {
			timeout: 300_000,
		});
		await alone.stop();
		expect(await becomesReady(lab, backend)).toBe(false);
	});

	it("can't delete anything as a successor, which may not know all that reference it", async () => {
		const { lab, meta, alpha } = await three();
		const { backend } = alpha;
		await alpha.stop();
		await lab.delete(meta, "alpha-r1");
		const successor = await lab.start("alpha", "r1", { backend });
		await whenStored(successor, "alpha-r1", "beta-r1");
		await successor.stop();
		await meta.stop();
		const alone = await lab.start("alpha", "r1", { backend });
		await expect(alone.client.delete({ id: idOf(Thing, "a") })).rejects.toThrow(
			"some meta deployment can't be reached",
		);
	});
});

function elsewhere() {
	const to = { ...referenceTo({ type: Thing.type, name: "a" }), region: "r9" };
	return make(Widget, "v", create(WidgetSchema, { needs: to })).data;
}
