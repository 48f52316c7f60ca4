import { create } from "@bufbuild/protobuf";
import {
	DroppedDeploymentSchema,
	EndpointSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { ShadowIndex } from "./shadow-index.ts";
import { putRecord } from "./shadow-records.ts";

/** A storage whose first watch can be broken, and whose second one waits at the end of its snapshot. */
function interruptedStorage() {
	const stored = createMemoryBackend({ runtime: systemRuntime });
	const broken = Promise.withResolvers<never>();
	const held = Promise.withResolvers<void>();
	const released = Promise.withResolvers<void>();
	let watches = 0;
	async function* watchList(...args: Parameters<typeof stored.watchList>) {
		const isFirst = watches++ === 0;
		const events = stored.watchList(...args)[Symbol.asyncIterator]();
		for (;;) {
			const next = await (isFirst ? Promise.race([events.next(), broken.promise]) : events.next());
			if (next.done) {
				return;
			}
			if (!isFirst && next.value.kind === "end-of-snapshot") {
				held.resolve();
				await released.promise;
			}
			yield next.value;
		}
	}
	return { stored, backend: decorateBackend(stored, { watchList }), broken, held, released };
}

const putServer = (name: string) => {
	const value = create(EndpointSchema, { address: `http://${name}` });
	return putRecord(systemRuntime, name, undefined, { case: "endpoint", value });
};

describe("an index", () => {
	it("names the servers of a snapshot once it has the version of that", async () => {
		const { stored, backend, broken, held, released } = interruptedStorage();
		const index = new ShadowIndex(backend, systemRuntime, silentLogger);
		const onEndpoints = vi.fn<() => void>();
		const end = new AbortController();
		const ended = index.run(end.signal);
		await stored.commit([putServer("endpoint-a")]);
		await vi.waitFor(() => expect([...index.endpoints.keys()]).toEqual(["endpoint-a"]));
		const { version } = index;
		index.onEndpoints(onEndpoints);
		broken.reject(new Error("the watch broke"));
		await stored.commit([putServer("endpoint-b")]);
		await held.promise;
		expect([index.version, ...index.endpoints.keys()]).toEqual([version, "endpoint-a"]);
		expect(onEndpoints).not.toHaveBeenCalled();
		released.resolve();
		await vi.waitFor(() => expect(onEndpoints).toHaveBeenCalled());
		expect(index.version).not.toBe(version);
		expect([...index.endpoints.keys()]).toEqual(["endpoint-a", "endpoint-b"]);
		end.abort();
		await ended;
	});

	it("names servers with the version that has them, also if other records have it too", async () => {
		const backend = createMemoryBackend({ runtime: systemRuntime });
		const index = new ShadowIndex(backend, systemRuntime, silentLogger);
		const end = new AbortController();
		const ended = index.run(end.signal);
		const first = await backend.commit([putServer("endpoint-a"), putServer("endpoint-b")]);
		await index.reached(first.version);
		const named: (readonly string[])[] = [];
		index.onEndpoints(() => named.push([index.version, ...index.endpoints.keys()]));
		const others = [1, 2, 3].map((at) => {
			const value = create(DroppedDeploymentSchema, { uid: `uid-${at}` });
			return putRecord(systemRuntime, `dropped-${at}`, undefined, { case: "dropped", value });
		});
		const added = await backend.commit([putServer("endpoint-c"), ...others]);
		await index.reached(added.version);
		expect(named).toEqual([[added.version, "endpoint-a", "endpoint-b", "endpoint-c"]]);
		end.abort();
		await ended;
	});
});
