import { seededRandom } from "@plinth/runtime/testing";
import { describe, it } from "vitest";
import { crashRounds, damageRounds } from "./crash-rounds.fixture.ts";

describe("a process that is killed while it writes", () => {
	it("leaves all that it acknowledged, and nothing half done", async () => {
		await crashRounds(6, seededRandom(1));
	});

	it("leaves files whose damage costs the newest commits at most, or is refused", async () => {
		await damageRounds(6, seededRandom(2));
	});
});
