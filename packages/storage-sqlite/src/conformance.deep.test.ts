import { describeConformance } from "@plinth/storage/conformance";
import { runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { sqliteHarness } from "./conformance.fixture.ts";

describeConformance("the SQLite backend", sqliteHarness, {
	describe,
	it: it.concurrent,
	seeds: runs(7),
	firstSeed: seed,
});
