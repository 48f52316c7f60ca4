import { seededRuntime } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { artistType, idFor, resource } from "../conformance/test-resources.ts";
import { createMemoryBackend } from "../memory-backend.ts";
import { delayedBackend } from "./delayed-backend.ts";
import { recordedBackend, type StoredChange } from "./recorded-backend.ts";

const everything = {
	type: artistType,
	tenancy: { partition: "*", namespace: "*" },
	namePrefix: "",
};

const put = (name: string) => ({
	op: "put" as const,
	resource: resource(name),
	expectedVersion: "",
});

describe("a delayed backend", () => {
	it("commits everything, in an order that depends on the seed", async () => {
		const orders = new Set<string>();
		for (let seed = 1; seed <= 20; seed++) {
			const runtime = seededRuntime({ seed });
			const changes: StoredChange[] = [];
			const recorded = recordedBackend(createMemoryBackend({ runtime }), (change) =>
				changes.push(change),
			);
			const delayed = delayedBackend(recorded, { ...runtime, chance: 0.6 });
			const commits = ["a", "b", "c"].map((name) => delayed.commit([put(name)]));
			await runtime.scheduler.run(Promise.all(commits));
			const { resources } = await runtime.scheduler.run(delayed.list(everything));
			expect(resources).toHaveLength(3);
			orders.add(changes.map((change) => change.kind === "put" && change.resource.id?.name).join());
		}
		expect(orders.size).toBeGreaterThan(3);
	});

	it("passes on events in order, and failures unchanged", async () => {
		const runtime = seededRuntime({ seed: 1 });
		const delayed = delayedBackend(createMemoryBackend({ runtime }), { ...runtime, chance: 0.6 });
		const stop = new AbortController();
		const seen: unknown[] = [];
		const watching = (async () => {
			for await (const event of delayed.watchList(everything, { signal: stop.signal })) {
				seen.push(event.version);
			}
		})();
		await runtime.scheduler.run(delayed.commit([put("a")]));
		await runtime.scheduler.run(delayed.commit([put("b")]));
		await expect(runtime.scheduler.run(delayed.commit([put("b")]))).rejects.toThrow(
			"compare-and-swap failed",
		);
		await runtime.scheduler.drain();
		expect(seen.filter((version) => version !== undefined).slice(-1)).toEqual(["2"]);
		stop.abort(new Error("enough"));
		await expect(runtime.scheduler.run(watching)).rejects.toThrow("enough");
	});

	it("refuses a chance that would never end", () => {
		const runtime = seededRuntime({ seed: 1 });
		expect(() => delayedBackend(createMemoryBackend(), { ...runtime, chance: 1 })).toThrow(
			"from 0 on and below 1, got 1",
		);
	});
});

describe("a recorded backend", () => {
	it("reports changes, but no refused commits, asserts or dry runs", async () => {
		const changes: StoredChange[] = [];
		const backend = recordedBackend(createMemoryBackend(), (change) => changes.push(change));
		await backend.commit([put("a")]);
		await backend.commit([put("b")], { dryRun: true });
		await expect(backend.commit([put("a")])).rejects.toThrow();
		const id = idFor("a");
		await backend.commit([{ op: "assert", id }]);
		await backend.commit([{ op: "delete", id, expectedVersion: "1" }]);
		await backend.commit([{ op: "delete", id, expectedVersion: "1" }]);
		expect(changes).toMatchObject([
			{ kind: "put", version: "1", resource: { id: { name: "a" } } },
			{ kind: "delete", version: "2", id: { name: "a" } },
		]);
	});
});
