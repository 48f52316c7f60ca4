/** Two clusters with 100,000 resources, as processes, of which either is killed and restored. */
import { expect, it } from "vitest";
import { copyMany } from "./many-copies.fixture.ts";

it("copies of 100,000 resources are right after kills and restores of either side", async () => {
	const { copiedMs, healedMs, report } = await copyMany(100_000);
	console.log(JSON.stringify({ copiedMs, healedMs }));
	expect(report).toMatchObject({ state: "Streaming", leftOutTotal: 0n });
});
