import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	ControllerSchema,
	Phase,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { describe, expect, it } from "vitest";
import { mergeControllers } from "./merge-controllers.ts";

function merge(...all: readonly MessageInitShape<typeof ControllerSchema>[]) {
	return mergeControllers(all.map((each) => create(ControllerSchema, each)));
}

describe("the reports of several servers on one controller", () => {
	it("are nothing if there are none, and the report of the only server", () => {
		expect(mergeControllers([])).toBeUndefined();
		const only = create(ControllerSchema, { name: "singers", restarts: 3 });
		expect(mergeControllers([only])).toBe(only);
	});

	it("add up what they count, and keep the longest time and the newest error", () => {
		const merged = merge(
			{
				...{ name: "singers", manages: "demo.v1.Artist", placement: Placement.SHARDED },
				restarts: 1,
				lastError: { message: "old", occurredAt: timestampFromMs(1_000) },
				requests: { live: 1, delayed: 2, failing: 3 },
				mappings: { "demo.v1.Album": { active: 1 } },
				cachedTypes: [{ type: "demo.v1.Artist", size: 10n, indexes: { genre: 2n } }],
				reconciles: {
					...{ succeeded: 5n, failed: 1n, total: durationFromMs(10) },
					...{ longest: durationFromMs(7), durations: [4n, 2n] },
					lastFailure: { message: "new", occurredAt: timestampFromMs(5_000) },
				},
				ownWrites: { noted: 1n, longestWait: durationFromMs(3) },
				overdue: ["a"],
				stillRunning: [{ key: "a", running: durationFromMs(1_000) }],
				undecodable: { count: 2, errors: ["bad"] },
				shards: { open: [3, 1], count: 16 },
				servers: [{ server: "host/1" }],
			},
			{
				name: "singers",
				restarts: 2,
				lastError: { message: "new", occurredAt: timestampFromMs(2_000) },
				requests: { live: 4, oldestKey: "b", oldestWaiting: durationFromMs(5) },
				mappings: { "demo.v1.Album": { active: 2 }, clock: { held: 1 } },
				cachedTypes: [{ type: "demo.v1.Artist", size: 11n, indexes: { genre: 3n } }],
				reconciles: {
					...{ succeeded: 6n, total: durationFromMs(20), longest: durationFromMs(9) },
					durations: [1n, 2n, 3n],
					lastFailure: { message: "old", occurredAt: timestampFromMs(4_000) },
				},
				ownWrites: { noted: 2n, longestWait: durationFromMs(8) },
				overdue: ["a", "b"],
				stillRunning: [{ key: "b", running: durationFromMs(2_000) }],
				undecodable: { count: 3, errors: ["bad", "worse"] },
				shards: { open: [2], count: 16 },
				servers: [{ server: "host/2" }],
			},
		);
		expect(merged).toMatchObject({
			...{ name: "singers", manages: "demo.v1.Artist", placement: Placement.SHARDED },
			restarts: 3,
			lastError: { message: "new" },
			requests: { live: 5, delayed: 2, failing: 3, oldestKey: "b" },
			mappings: { "demo.v1.Album": { active: 3 }, clock: { held: 1 } },
			cachedTypes: [{ type: "demo.v1.Artist", size: 21n, indexes: { genre: 5n } }],
			reconciles: {
				...{ succeeded: 11n, failed: 1n, total: durationFromMs(30), longest: durationFromMs(9) },
				durations: [5n, 4n, 3n],
				lastFailure: { message: "new" },
			},
			ownWrites: { noted: 3n, longestWait: durationFromMs(8) },
			overdue: ["a", "b"],
			stillRunning: [{ key: "b" }, { key: "a" }],
			undecodable: { count: 3, errors: ["bad", "worse"] },
			shards: { open: [1, 2, 3], count: 16 },
			servers: [{ server: "host/1" }, { server: "host/2" }],
		});
	});

	it.each([
		["of the server that holds the lease", [Phase.WAITING_FOR_LEASE, Phase.RUNNING], Phase.RUNNING],
		["of a server on which it fails", [Phase.RUNNING, Phase.BACKING_OFF], Phase.BACKING_OFF],
		["of a server on which it starts", [Phase.RUNNING, Phase.PRIMING], Phase.PRIMING],
		["of no server that stops without it", [Phase.STOPPED, Phase.RUNNING], Phase.RUNNING],
	])("have the phase %s", (_, phases, phase) => {
		expect(merge(...phases.map((each) => ({ phase: each })))?.phase).toBe(phase);
		expect(merge(...phases.toReversed().map((each) => ({ phase: each })))?.phase).toBe(phase);
	});

	it("lack queues and shards if it runs nowhere", () => {
		const merged = merge({ phase: Phase.WAITING_FOR_LEASE }, { phase: Phase.WAITING_FOR_LEASE });
		expect(merged?.requests).toBeUndefined();
		expect(merged?.shards).toBeUndefined();
		expect(merged?.undecodable).toBeUndefined();
	});
});
