import { create } from "@bufbuild/protobuf";
import { defineController, sameNameAs, watch } from "@plinth/controller";
import type { ID } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { ArtistSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../../testdata/music.ts";
import { defineModule } from "../module/index.ts";
import { patiently, startTwoRegions } from "./two-regions.fixture.ts";

/** A controller that gives each artist of its region the genre of the one of that name in `r1`. */
function adopting(reconciled: (id: ID) => void) {
	return defineController({
		name: "adopting",
		manages: Artist,
		watches: [watch(Artist, { map: sameNameAs(Artist), regions: ["r1"] })],
		async reconcile(context, { id }) {
			reconciled(id);
			const original = context.cache.get(Artist, { ...id, region: "r1" });
			if (original !== undefined && context.cache.get(Artist, id) !== undefined) {
				const { genre } = original.data;
				await context.writeIfChanged(Artist, { id, data: create(ArtistSchema, { genre }) });
			}
		},
	});
}

describe("a controller", { timeout: 300_000 }, () => {
	it("sees the copies that it asks for, and never gets one to manage", async () => {
		const reconciled: ID[] = [];
		const controllers = [adopting((id) => reconciled.push(id))];
		const { west, east } = await startTwoRegions({
			east: { modules: [defineModule({ name: "music", types: [Artist], controllers })] },
		});
		await west.write("miles", "jazz");
		await west.write("nico", "rock");
		await east.write("miles", "unknown");
		await west.partitionPolicy("default", "r2");
		await expect.poll(() => east.artists(""), patiently).toEqual([":default/miles=jazz"]);
		await west.write("miles", "cool");
		await expect
			.poll(() => east.artists(), patiently)
			.toEqual([":default/miles=cool", "r1:default/miles=cool", "r1:default/nico=rock"]);
		expect(reconciled.filter(({ region }) => region !== undefined)).toEqual([]);
		expect(reconciled.map(({ name }) => name)).toContain("miles");
	});
});
