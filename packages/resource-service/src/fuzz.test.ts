import { expect, it } from "vitest";
import { fuzz } from "../testdata/fuzz/run-fuzz.ts";
import { seeds } from "../testdata/simulation/seeds.ts";

it("answers random and bent requests over a port, and none with a fault of the server", async () => {
	for (const seed of seeds(1)) {
		const { answers, faults } = await fuzz(seed, 3_000);
		expect(faults, `seed ${seed}`).toEqual([]);
		expect([...answers.keys()]).toEqual(expect.arrayContaining(["ok", "invalid_argument"]));
	}
});
