import { describeConformance } from "@plinth/storage/conformance";
import { describe, it } from "vitest";
import { sqliteHarness } from "./conformance.fixture.ts";

// Few seeds: the deep tests run many. Concurrent, since most of the time a behavior waits for the storage.
describeConformance("the SQLite backend", sqliteHarness, {
	describe,
	it: it.concurrent,
	seeds: 2,
});
