import { seeds } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { simulateAll } from "./seeds.fixture.ts";

const chosen = seeds(200).filter((seed) => seed % 2 === 1);

describe.skipIf(chosen.length === 0)("controllers whose lease expires on different clocks", () => {
	it(`keep their guarantees over ${chosen.length} seeds`, async () => {
		const counts = await simulateAll(chosen);
		expect(counts.reconciles).toBeGreaterThan(0);
	});
});
