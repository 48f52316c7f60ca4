import { seededRandom } from "@plinth/runtime/testing";
import { runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { crashRounds, damageRounds } from "./crash-rounds.fixture.ts";

describe(`a process that is killed while it writes from seed ${seed}`, () => {
	it("leaves everything that it acknowledged, and no partial commit", async () => {
		await crashRounds(runs(10), seededRandom(seed));
	});

	it("leaves files whose damage loses at most the newest commits, or is refused", async () => {
		await damageRounds(runs(5), seededRandom(seed + 1));
	});
});
