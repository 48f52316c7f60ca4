import { seededRandom } from "@plinth/runtime/testing";
import { seedOr } from "@plinth/test-support/seeds";
import { describe, it } from "vitest";
import { crashRounds, damageRounds } from "./crash-rounds.fixture.ts";

const seed = seedOr(Date.now() % 1_000_000);

describe(`a process that is killed while it writes (PLINTH_SEED=${seed})`, () => {
	it("leaves all that it acknowledged, and nothing half done, 200 times", async () => {
		await crashRounds(200, seededRandom(seed));
	});

	it("leaves files whose damage costs the newest commits at most, or is refused, 100 times", async () => {
		await damageRounds(100, seededRandom(seed + 1));
	});
});
