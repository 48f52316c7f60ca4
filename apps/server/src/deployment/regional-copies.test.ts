import { expect, it } from "vitest";
import { patiently, startTwoRegions } from "./two-regions.fixture.ts";

it("copies of what a policy names appear in the other region, and follow each change", async () => {
	const { west, east } = await startTwoRegions();
	await west.write("miles", "jazz");
	await west.write("nico", "rock");
	await east.write("miles", "local");
	await west.partitionPolicy("default", "r1", "r2");
	await expect
		.poll(() => east.artists(), patiently)
		.toEqual([":default/miles=local", "r1:default/miles=jazz", "r1:default/nico=rock"]);
	await west.write("miles", "cool");
	await west.delete("nico");
	await west.write("otis", "soul");
	await expect
		.poll(() => east.artists("r1"), patiently)
		.toEqual(["r1:default/miles=cool", "r1:default/otis=soul"]);
	expect(await east.artists("")).toEqual([":default/miles=local"]);
	expect(await west.artists()).toEqual([":default/miles=cool", ":default/otis=soul"]);
	expect(await east.report("r1")).toMatchObject({
		state: "Streaming",
		copies: { "music.v1.Artist": 2n },
		leftOutTotal: 0n,
	});
});
