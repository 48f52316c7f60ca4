/** What controllers of a server see of copies of other regions. */
import { defineController, sameNameAs, type WatchedRegions, watch } from "@plinth/controller";
import { decode, idOf } from "@plinth/resource";
import { expect, it, vi } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import { defineModule } from "./module/index.ts";
import { startServer } from "./started-server.fixture.ts";
import { storageWithCopies } from "./stored-copies.fixture.ts";

/** Writes down what is cached whenever an artist is reconciled. */
function observer(regions: WatchedRegions, seen: string[]) {
	return defineController({
		name: "observer",
		manages: Artist,
		watches: regions.length > 0 ? [watch(Artist, { regions, map: sameNameAs(Artist) })] : [],
		async reconcile({ cache }, { id }) {
			const all = cache
				.list(Artist, { region: "*" })
				.map(({ resource, data }) => `${resource.id?.region ?? "here"} ${data.genre}`);
			seen.push(`${id.name} ${id.region ?? "here"}: ${all.join(", ")}`);
		},
	});
}

it.each<[WatchedRegions, readonly string[], readonly string[]]>([
	[[], ["anna"], ["here jazz"]],
	["*", ["anna", "bert"], ["here jazz", "eu copied from eu", "us copied from us"]],
	[["us"], ["anna"], ["here jazz", "us copied from us"]],
])(
	"a controller of a server that asks for copies of %j has those",
	async (regions, names, cached) => {
		const seen: string[] = [];
		const server = await startServer({
			storage: await storageWithCopies({ us: ["anna"], eu: ["bert"] }),
			modules: [
				defineModule({ name: "music", types: [Artist], controllers: [observer(regions, seen)] }),
			],
		});
		await server.client.write({ resource: artist("anna") });
		const expected = names.map((name) => `${name} here: ${cached.join(", ")}`);
		await vi.waitFor(
			async () => {
				expect(seen).toContain(expected[0]);
				const reconciled = new Set(seen.map((line) => line.split(":")[0]));
				expect(reconciled).toEqual(new Set(names.map((name) => `${name} here`)));
			},
			{ timeout: 300_000 },
		);
		const { resource } = await server.client.read({ id: idOf(Artist, "anna") });
		expect(resource && decode(Artist, resource).data.genre).toBe("jazz");
	},
);
