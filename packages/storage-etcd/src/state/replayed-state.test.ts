import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { defaultStorageLimits, LoadCapacity, StateStore } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { NotReplayed, ReplayedState } from "./replayed-state.ts";
import { RevisionGate } from "./revision-gate.ts";

/** A state whose load has taken so long, and whose changes are now replayed. */
function replaying(loadMs: number) {
	const clock = new FakeClock();
	const gate = new RevisionGate();
	const replayed = new ReplayedState(new LoadCapacity(defaultStorageLimits), clock, 5_000);
	clock.advance(loadMs);
	const store = new StateStore(systemRuntime, defaultStorageLimits);
	const isReady = replayed.reaches(10, gate, []);
	// Handled where it is expected.
	isReady.catch(() => {});
	return { clock, gate, isReady, apply: () => replayed.onApplied(store, 1) };
}

describe("a state that is replayed", () => {
	it("is used if its changes are applied in time, however long it was loaded", async () => {
		const { gate, isReady, apply } = replaying(120_000);
		apply();
		gate.advance(10);
		await isReady;
	});

	it("is not used if its changes take long to apply", async () => {
		const { clock, isReady, apply } = replaying(0);
		for (let seconds = 0; seconds < 12; seconds += 4) {
			clock.advance(4_000);
			apply();
		}
		await expect(isReady).rejects.toThrow(NotReplayed);
	});
});
