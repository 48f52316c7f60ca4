import { describe, expect, it } from "vitest";
import { StateTooLarge } from "../errors.ts";
import { type HeapProbe, LoadCapacity } from "./load-capacity.ts";

const mebibyte = 1024 * 1024;
const unlimited = { memoryBytes: Number.POSITIVE_INFINITY };

/** A heap of 1,000 MiB with so much in use, and so much garbage. */
function heap(liveMebibytes: number, garbageMebibytes: number) {
	const state = { live: liveMebibytes, garbage: garbageMebibytes, collections: 0 };
	const probe: HeapProbe = {
		measure: () => ({
			usedBytes: (state.live + state.garbage) * mebibyte,
			limitBytes: 1000 * mebibyte,
		}),
		collectGarbage() {
			state.collections += 1;
			state.garbage = 0;
		},
	};
	return { state, probe };
}

describe("LoadCapacity", () => {
	it("refuses a state over the memory limit, and says how large it is and what to do", () => {
		const capacity = new LoadCapacity({ memoryBytes: 1_000_000 }, heap(10, 0).probe);
		capacity.check({ bytes: 1_000_000, size: 400, total: 5000 });
		expect(() => capacity.check({ bytes: 1_000_001, size: 401, total: 5000 })).toThrow(
			new StateTooLarge(
				"the state does not fit into the memory limit: 401 of 5000 resources take 1000001 bytes, and the limit is 1000000 bytes; raise it (--memory-limit)",
			),
		);
	});

	it("refuses a state that fills the heap, and suggests one for all of it", () => {
		const { probe, state } = heap(10, 0);
		const capacity = new LoadCapacity(unlimited, probe);
		state.live = 851;
		expect(() => capacity.check({ bytes: 300_000_000, size: 250_000, total: 500_000 })).toThrow(
			new StateTooLarge(
				"the state does not fit into the heap of Node: 250000 of 500000 resources take 300000000 bytes and fill 851 MiB of a heap of 1000 MiB; give Node a larger heap, as with NODE_OPTIONS=--max-old-space-size=2560",
			),
		);
	});

	it("does not mistake garbage for state, and collects it no more than necessary", () => {
		const { probe, state } = heap(10, 0);
		const capacity = new LoadCapacity(unlimited, probe);
		for (let live = 0; live <= 840; live += 10) {
			state.live = live;
			state.garbage = Math.min(state.garbage + 5, 1000 - live);
			capacity.check({ bytes: live * mebibyte, size: live });
		}
		expect(state.collections).toBeGreaterThan(0);
		expect(state.collections).toBeLessThan(20);
	});

	it("looks at the real heap, and can collect garbage there", () => {
		const capacity = new LoadCapacity(unlimited);
		capacity.check({ bytes: 1, size: 1 });
	});
});
