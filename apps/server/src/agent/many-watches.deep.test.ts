/** Watches through several agents, as processes, while servers are killed and stopped; `many-watches.soak.test.ts` has 2,000. */
import { describeWith } from "@plinth/test-support";
import { expect, it } from "vitest";
import { followManyWatches } from "./many-watches.fixture.ts";

describeWith("etcd")("watches through two agents in front of three servers", () => {
	it("miss nothing and repeat nothing while servers are killed and stopped", async () => {
		const found = await followManyWatches({
			...{ servers: 3, agents: 2, watches: 40, seconds: 15, seed: 1 },
		});
		expect(found.problems).toEqual([]);
		// How often depends on how fast the machine is.
		expect(Math.min(...found.events)).toBeGreaterThan(0);
		expect(found.kills + found.stops).toBeGreaterThan(0);
		expect(found.moves).toBeGreaterThan(0);
	}, 600_000);
});
