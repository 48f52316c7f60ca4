import { create } from "@bufbuild/protobuf";
import type { Share, WorkHold } from "@plinth/controller";
import {
	OutgoingReferenceSchema,
	ResourceKeySchema,
	ShadowSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { controllerClients } from "../lab/own-client.fixture.ts";
import { createConstraints } from "../node/constraints.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { shadowName } from "../shadow/shadow.ts";
import { putRecord } from "../shadow/shadow-records.ts";
import { createDbConstraintController } from "./db-constraint-controller.ts";

const target = create(ResourceKeySchema, { group: "beta", kind: "Thing", name: "t", region: "r2" });
const deletion = { deploymentUid: "beta", target, targetUid: "01TARGET" };

/** A server that holds no shard yet, whose controller accepts triggers. */
async function withoutShards(limits: Partial<ConstraintLimits> = {}) {
	const backend = createMemoryBackend();
	const constraints = createConstraints({
		backend,
		descriptor: new ServiceDescriptor({ types: [Thing], service: "alpha" }),
		environment: localEnvironment("alpha", "alpha"),
		limits,
	});
	const { context } = constraints;
	const controller = createDbConstraintController({
		name: "db-constraint",
		constraints,
		whileRunning: () => () => {},
	});
	const end = new AbortController();
	const held: { by?: WorkHold } = {};
	const listeners = new Set<() => void>();
	const share: Share = {
		holdOf: () => held.by,
		onChange: (listener) => {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
	};
	const ends: Promise<unknown>[] = [];
	onTestFinished(async () => {
		end.abort();
		await Promise.all(ends);
	});
	const named: string[] = [];
	return {
		backend,
		context,
		named,
		/** Begins to follow the shadows. */
		follow: () => ends.push(constraints.run(end.signal)),
		/** Begins to accept triggers, and keeps the names that they queue. */
		listen() {
			const [watch] = controller.watches;
			if (watch?.kind !== "custom") {
				throw new Error("the controller has no watch of names");
			}
			const { client } = controllerClients(constraints.store, [Thing], systemRuntime);
			const { clock } = systemRuntime;
			const logger = silentLogger;
			const names = watch.source({ share, signal: end.signal, client, clock, logger });
			const read = async () => {
				for await (const { key } of names) {
					named.push(key);
				}
			};
			ends.push(read());
		},
		/** The server holds all shards from now on, or none. */
		hold(hold?: WorkHold) {
			delete held.by;
			Object.assign(held, hold && { by: hold });
			for (const listener of listeners) {
				listener();
			}
		},
		/** What the controller does when it gains shards. */
		async gain() {
			await controller.catchUp?.(end.signal);
		},
		/** Stores the shadow of a resource that references the target. Returns its name. */
		async reference() {
			const resource = create(ResourceKeySchema, { group: "alpha", kind: "Thing", name: "w" });
			const outgoing = [create(OutgoingReferenceSchema, { target, targetUid: "01TARGET" })];
			const value = create(ShadowSchema, { resource, uid: "01W", outgoing });
			const name = shadowName(resource);
			await backend.commit([putRecord(systemRuntime, name, undefined, { case: "shadow", value })]);
			return name;
		},
	};
}

/** Lets all that waits for nothing run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a server that gains shards", () => {
	it("begins passes once its index has all that was committed before", async () => {
		const { context, reference, follow, gain } = await withoutShards();
		const name = await reference();
		const stored = gain().then(() => context.index.get(name));
		await turn();
		follow();
		expect((await stored)?.shadow.uid).toBe("01W");
	});

	it("continues the deletions that were announced while another one held them", async () => {
		const { context, named, reference, follow, listen, gain } = await withoutShards();
		const name = await reference();
		follow();
		await gain();
		expect(context.index.get(name)).toBeDefined();
		listen();
		await turn();
		context.hints.deleting(deletion);
		await turn();
		expect(named.splice(0)).toEqual([shadowName(target)]);
		await gain();
		await turn();
		expect(named).toEqual([shadowName(target)]);
	});
});

describe("a server that loses shards", () => {
	it("makes room for deletions by those that it no longer controls", async () => {
		const { context, named, reference, follow, listen, gain, hold } = await withoutShards({
			deletionsPerDeployment: 1,
		});
		await reference();
		follow();
		await gain();
		hold({ fence: undefined });
		listen();
		await turn();
		const announce = async (targetUid: string) => {
			context.hints.deleting({ ...deletion, targetUid });
			await turn();
			return named.splice(0).length;
		};
		expect(await announce("01FIRST")).toBe(1);
		expect(await announce("01SECOND")).toBe(0);
		hold();
		expect(await announce("01SECOND")).toBe(1);
	});
});
