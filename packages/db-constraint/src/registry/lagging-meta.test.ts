import { create } from "@bufbuild/protobuf";
import { idOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import {
	createMemoryBackend,
	decorateBackend,
	type Mutation,
	type StorageBackend,
	type WatchEvent,
} from "@plinth/storage";
import { expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { make } from "../lab/lab.fixture.ts";
import { Deployment } from "./meta-types.ts";
import { RegistryLab, type Started, whenKnown } from "./registry-lab.fixture.ts";

function isBeta(event: WatchEvent): boolean {
	const id = event.kind === "upsert" ? event.resource.id : undefined;
	return id?.type?.kind === Deployment.type.kind && id.name === "beta-r1";
}

/** The successor establishes its references, and then tries to delete what beta may reference. */
async function deletion({ controlled, registry, client }: Started) {
	await controlled;
	await whenKnown(registry, () => registry.isComplete);
	await client.delete({ id: idOf(Thing, "a") });
}

/** Registers beta, and stops it before it reports to the successor. */
async function registerBeta(lab: RegistryLab) {
	const beta = await lab.start("beta", "r1");
	await beta.stop();
}

/** `alpha`, with the thing `a`, whose storage is restored, at a meta deployment with this storage. */
async function restored(meta: StorageBackend) {
	const lab = new RegistryLab();
	await lab.start("meta", "r1", { backend: meta });
	const alpha = await lab.start("alpha", "r1", { storageIncarnation: "one" });
	await alpha.client.write({ resource: make(Thing, "a", create(ThingSchema)) });
	await alpha.stop();
	const { backend } = alpha;
	return { lab, restore: () => lab.begin("alpha", "r1", { backend, storageIncarnation: "two" }) };
}

it("a successor waits for a deployment that a server of the meta deployment does not show yet", async () => {
	const memory = createMemoryBackend({ runtime: systemRuntime });
	const { lab, restore } = await restored(
		decorateBackend(memory, {
			async *watchList(query, options) {
				for await (const event of memory.watchList(query, options)) {
					if (options?.consistency === "strong" || !isBeta(event)) {
						yield event;
					}
				}
			},
		}),
	);
	await registerBeta(lab);
	await expect(deletion(await restore())).rejects.toThrow(/waits for .*beta in r1/);
});

it("a successor waits for a deployment that registers before it does", async () => {
	const memory = createMemoryBackend({ runtime: systemRuntime });
	const reached = Promise.withResolvers<void>();
	const released = Promise.withResolvers<void>();
	const isSuccessor = (mutation: Mutation) =>
		mutation.op === "put" && mutation.resource.id?.name === "alpha-r1-2";
	const { lab, restore } = await restored(
		decorateBackend(memory, {
			async commit(mutations, options) {
				if (mutations.some(isSuccessor)) {
					reached.resolve();
					await released.promise;
				}
				return memory.commit(mutations, options);
			},
			// What happens after the snapshot arrives late.
			async *watchList(query, options) {
				let isSnapshot = true;
				for await (const event of memory.watchList(query, options)) {
					isSnapshot &&= event.kind !== "end-of-snapshot";
					if (isSnapshot || !isBeta(event)) {
						yield event;
					}
				}
			},
		}),
	);
	const successor = await restore();
	await reached.promise;
	await registerBeta(lab);
	released.resolve();
	await expect(deletion(successor)).rejects.toThrow(/waits for .*beta in r1/);
});
