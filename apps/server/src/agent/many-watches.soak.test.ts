/** 2,000 watches through four agents in front of three servers that are killed and stopped for five minutes. */
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { followManyWatches } from "./many-watches.fixture.ts";

describeWith("etcd")("2,000 watches through four agents in front of three servers", () => {
	it("miss nothing and repeat nothing in five minutes of kills and stops", async () => {
		const found = await followManyWatches({
			...{ servers: 3, agents: 4, watches: 2_000, seconds: 300, seed: 1 },
		});
		console.log(JSON.stringify({ ...found, problems: found.problems.slice(0, 20) }));
		expect(found.problems).toEqual([]);
		expect(found.kills + found.stops).toBeGreaterThan(50);
		expect(found.moves).toBeGreaterThan(2_000);
	});
});
