import { seededRandom } from "@plinth/runtime/testing";
import { describe, it } from "vitest";
import { crashRounds, damageRounds } from "./crash-rounds.fixture.ts";

describe("a process that is killed while it writes", () => {
	// Few rounds each: the deep tests run many.
	it("leaves everything that it acknowledged, and no partial commit", async () => {
		await crashRounds(3, seededRandom(1));
	});

	it("leaves files whose damage loses at most the newest commits, or is refused", async () => {
		await damageRounds(3, seededRandom(2));
	});
});
