/** Two clusters, as processes, of which either is killed and restored; `many-copies.soak.test.ts` has 100,000 resources. */
import { expect, it } from "vitest";
import { copyMany } from "./many-copies.fixture.ts";

it("copies of 500 resources are right after kills and restores of either side", async () => {
	const { report } = await copyMany(500);
	expect(report).toMatchObject({ state: "Streaming", leftOutTotal: 0n });
}, 600_000);
