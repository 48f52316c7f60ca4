import { create } from "@bufbuild/protobuf";
import { idOf, newUlid, referenceTo, resourceOf } from "@plinth/resource";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { EventLoopScheduler, type Runtime, systemRuntime } from "@plinth/runtime";
import { CountedEventLoop } from "@plinth/runtime/testing";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, ThingSchema } from "../../testdata/types.ts";
import { createConstraints } from "../node/constraints.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";

/** The duration of a commit and of an event in these tests, in milliseconds. */
const workMs = 0.25;
const resources = 200;

/** A storage with resources whose references are not recorded yet, and its constraints. */
async function start(loop: CountedEventLoop) {
	const runtime: Runtime = { ...systemRuntime, scheduler: new EventLoopScheduler(loop) };
	const memory = createMemoryBackend();
	await ensureDefaultTenancy(memory, systemRuntime);
	for (let at = 0; at < resources; at++) {
		const data = create(ThingSchema, {
			likes: [referenceTo({ type: Thing.type, name: "thing-0" })],
		});
		const resource = resourceOf(Thing, {
			id: { ...idOf(Thing, `thing-${at}`), uid: newUlid(systemRuntime) },
			data,
		});
		const generation = newUlid(systemRuntime);
		await memory.commit([
			{ op: "put", resource: { ...resource, generation }, expectedVersion: "" },
		]);
	}
	const backend = decorateBackend(memory, {
		commit: async (mutations, options) => {
			loop.work(workMs);
			return memory.commit(mutations, options);
		},
		async *watchList(query, options) {
			for await (const event of memory.watchList(query, options)) {
				loop.work(workMs);
				yield event;
			}
		},
	});
	return createConstraints({
		backend,
		descriptor: new ServiceDescriptor({ types: [Thing], foreignTypes: [], service: "alpha" }),
		environment: localEnvironment("", "alpha"),
		runtime,
	});
}

/** Activates the schema, which derives the references of all resources, and then reads all shadows into the index. */
async function activate(
	loop: CountedEventLoop,
): Promise<{ derivedMs: number; followedMs: number }> {
	const { schemaPass, context, run } = await start(loop);
	const stop = new AbortController();
	await schemaPass.begin();
	await schemaPass.complete(stop.signal);
	const derivedMs = loop.longestMs;
	loop.longestMs = 0;
	const running = run(stop.signal);
	await context.index.reached(await context.backend.catchUp(stop.signal));
	stop.abort();
	await running;
	return { derivedMs, followedMs: loop.longestMs };
}

describe("the loops of constraints", () => {
	it("let the event loop run in between", async () => {
		const { derivedMs, followedMs } = await activate(new CountedEventLoop());
		expect(derivedMs).toBeLessThan(5 + 16 * 3 * workMs);
		expect(followedMs).toBeLessThan(5 + 16 * workMs);
	});

	it("would be found to block it without a budget", async () => {
		const loop = new CountedEventLoop();
		loop.now = () => 0;
		const { derivedMs, followedMs } = await activate(loop);
		expect(derivedMs).toBeGreaterThanOrEqual(resources * workMs);
		expect(followedMs).toBeGreaterThanOrEqual(resources * workMs);
	});
});
