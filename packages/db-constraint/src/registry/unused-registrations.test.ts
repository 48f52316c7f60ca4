import { create } from "@bufbuild/protobuf";
import { DeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { systemRuntime as runtime, silentLogger } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { expect, it, vi } from "vitest";
import type { MetaSource } from "./meta-source.ts";
import { Deployment } from "./meta-types.ts";
import { giveUpUid, keepUid, openIdentity } from "./own-identity.ts";
import { RegistryView } from "./registry-view.ts";
import { UnusedRegistrations } from "./unused-registrations.ts";

it("deletes a registration that arrives while it reads whether others are used", async () => {
	const memory = createMemoryBackend({ runtime });
	const gate = Promise.withResolvers<void>();
	let reads = 0;
	const backend = decorateBackend(memory, {
		async lookup(...args) {
			reads += 1;
			await gate.promise;
			return memory.lookup(...args);
		},
	});
	const kept = { backend: memory, runtime, storageIncarnation: "s" };
	await openIdentity(kept);
	await keepUid(kept, "5");
	await giveUpUid(kept, "5");
	await keepUid(kept, "7");

	const view = new RegistryView();
	const register = (uid: string, predecessorUid: string) => {
		const id = { ...idOf(Deployment, `beta-${uid}`), uid };
		const place = { service: "beta", region: "r1", storageIncarnation: "s" };
		const data = create(DeploymentSchema, { ...place, predecessorUid });
		view.apply("meta", { ...resourceOf(Deployment, { id, data }), version: uid }, "stored");
	};
	register("5", "");
	register("7", "5");
	const deleted: string[] = [];
	const client = {
		async delete({ id }: { readonly id: { readonly name: string; readonly uid: string } }) {
			deleted.push(id.uid);
			const resource = resourceOf(Deployment, { id: { ...idOf(Deployment, id.name), ...id } });
			view.apply("meta", { ...resource, version: "9" }, "removed");
		},
	} as unknown as MetaSource["client"];
	const registrations = new UnusedRegistrations({
		...{ view, runtime, logger: silentLogger, callTimeoutMs: 60_000 },
		identity: { ...kept, backend },
		sources: { serversWith: () => [{ address: "meta", client }] },
	});

	const own = view.deployments().get("7")!;
	const end = new AbortController().signal;
	const first = registrations.delete(own, end);
	await vi.waitFor(() => expect(reads).toBe(1), { timeout: 300_000 });
	register("8", "5");
	await registrations.delete(own, end);
	gate.resolve();
	await first;
	expect(deleted).toEqual(["8"]);
	expect(view.find("beta", "r1")?.uid).toBe("7");
});
