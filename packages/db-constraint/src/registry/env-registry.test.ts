import { ConnectError } from "@connectrpc/connect";
import { idOf, tenancyOf, typeOf } from "@plinth/resource";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { readDeploymentRecord } from "../deployment-record.ts";
import { ServiceDescriptor } from "../service-descriptor.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import { register } from "./registration.ts";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";

const names = (registry: {
	deployments(): readonly { readonly name: string; readonly disabled: boolean }[];
}) =>
	registry
		.deployments()
		.map(({ name }) => name)
		.sort();

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

	it("finds what is registered with several meta deployments, by the picture of one", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1", { metas: [] });
		await lab.start("meta", "r2", { metas: ["meta-r1"] });
		// The first one is not told of the second, which registers with itself.
		const alpha = await lab.start("alpha", "r2", { metas: ["meta-r2", "meta-r1"] });
		const beta = await lab.start("beta", "r1", { metas: ["meta-r1", "meta-r2"] });
		await whenKnown(beta.registry, () => names(beta.registry).length === 4);
		expect(beta.registry.find("alpha", "r2")?.uid).toBe(alpha.registry.self.uid);
	});

	it("keeps its uid over restarts, and its picture while the meta service is lost", async () => {
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

	it("is not ready before a meta deployment answers", async () => {
		const lab = new RegistryLab();
		const alpha = await lab.begin("alpha", "r1");
		const ready = alpha.registry.ready(AbortSignal.timeout(10_000));
		expect(alpha.registry.state.kind).toBe("registering");
		await lab.start("meta", "r1");
		await ready;
		expect(alpha.registry.state.kind).toBe("registered");
	});

	it("learns that it was deleted, by the record that stays, and begins anew as its own successor", async () => {
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
		const again = await lab.start("alpha", "r1", { backend: alpha.backend });
		expect(again.registry.self).toMatchObject({
			name: "alpha-r1",
			predecessorUid: uid,
			established: false,
		});
		expect(again.registry.self.uid).not.toBe(uid);
	});

	it("admits a storage that was restored as a new deployment beside the old one", async () => {
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
		await after.registry.announce("v1");
		await whenKnown(beta.registry, () => beta.registry.find("alpha", "r1")?.established === true);
	});

	it("takes what an earlier start had registered before it could note the uid", async () => {
		const lab = new RegistryLab();
		await lab.start("meta", "r1");
		const first = await lab.start("alpha", "r1", { storageIncarnation: "one" });
		await first.stop();
		const again = await lab.start("alpha", "r1", { storageIncarnation: "one" });
		expect(again.registry.self.uid).toBe(first.registry.self.uid);
		expect((await readDeploymentRecord(again.backend))?.uid).toBe(first.registry.self.uid);
	});

	it("registers the servers of one storage as one deployment, though they start at the same time", async () => {
		const lab = new RegistryLab();
		const { client } = await lab.start("meta", "r1");
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const registerWith = (meta: typeof client) =>
			register({
				deployment: { service: "alpha", region: "r1", version: "v1", address: "alpha-r1" },
				descriptor: new ServiceDescriptor({ types: [Thing], service: "alpha" }),
				identity: { backend, runtime: systemRuntime },
				metas: [{ address: "meta-r1", client: meta }],
				logger: silentLogger,
				callMs: 500,
			});
		const listed = Promise.withResolvers<void>();
		const goesOn = Promise.withResolvers<void>();
		const second = registerWith({
			...client,
			list: async (...call) => {
				const answer = await client.list(...call);
				listed.resolve();
				await goesOn.promise;
				return answer;
			},
		});
		await listed.promise;
		const { registered } = await registerWith(client);
		goesOn.resolve();
		expect((await second).registered).toEqual(registered);
		expect((await readDeploymentRecord(backend))?.uid).toBe(registered.uid);
		const { resources } = await client.list({
			type: typeOf(Deployment.type),
			tenancy: tenancyOf(),
		});
		expect(resources.map(({ id }) => id?.name)).toEqual(["alpha-r1", "meta-r1"]);
	});

	it("shows who is disabled, and does not talk to them", async () => {
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
