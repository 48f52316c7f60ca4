import { Export, Import, Peering } from "@plinth/peering";
import { idOf, Namespace, resourceOf, typeOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Artist, artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { allArtists, eventually, importing, peer, TestCluster } from "./two-clusters.fixture.ts";

const has = (east: TestCluster, partition: string, ...artists: readonly string[]) =>
	eventually(async () => expect(await east.artists(partition)).toEqual(artists));

const isGone = (east: TestCluster, partition = "west") =>
	eventually(async () =>
		expect(await outcome(east.artist("miles", partition))).toBe(
			`NotFound: partition not found: ${partition}`,
		),
	);

describe("an export", { timeout: 300_000 }, () => {
	it("offers only what it names: namespaces, prefixes and types, without masked fields", async () => {
		const { west, east } = await importing();
		await west.write(resourceOf(Namespace, { id: idOf(Namespace, "hidden") }));
		const inHidden = { ...artist("miles"), id: idOf(Artist, "miles", { namespace: "hidden" }) };
		const labeled = artist("miles");
		labeled.metadata = { label: "prestige", secret: "x" };
		for (const each of [labeled, artist("mingus"), artist("ella"), inHidden]) {
			await west.write(each);
		}
		await has(
			...[east, "west", "default/ella=jazz", "default/miles=jazz"],
			...["default/mingus=jazz", "hidden/miles=jazz"],
		);
		await west.export("artists", {
			...allArtists,
			namespaces: ["default"],
			types: [
				{
					type: typeOf(Artist.type),
					namePrefixes: ["mi"],
					maskedFields: ["data.genre", "metadata.secret"],
				},
			],
		});
		await has(east, "west", "default/miles=", "default/mingus=");
		expect((await east.artist("miles", "west"))?.metadata).toEqual({ label: "prestige" });
		await west.write(artist("miles", "blues"));
		await west.write(artist("nina"));
		await west.write(artist("mi6"));
		await has(east, "west", "default/mi6=", "default/miles=", "default/mingus=");
	});

	it("takes the copies away when it is removed, or no longer names the peer", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await has(east, "west", "default/miles=jazz");
		await west.export("artists", { ...allArtists, peers: ["north"] });
		await isGone(east);
		expect(await east.report("artists")).toMatchObject({ state: "ExportMissing" });
		await west.export("artists", allArtists);
		await has(east, "west", "default/miles=jazz");
		await west.server.client.delete({ id: idOf(Export, "artists") });
		await isGone(east);
	});

	it.each(["west", "east"])("ends when the peering is removed at its %s", async (side) => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await east.write(artist("own"));
		await has(east, "west", "default/miles=jazz");
		const cluster = side === "west" ? west : east;
		await cluster.server.client.delete({ id: idOf(Peering, side === "west" ? "east" : "west") });
		await isGone(east);
		expect(await east.artists("*")).toEqual(["default/own=jazz"]);
	});

	it.each([
		[{ partition: "" }, "partition is required"],
		[
			{ types: [{ type: typeOf(Peering.type) }] },
			"types[0].type invalid: peering.v1.Peering is a type of the server",
		],
		[
			{ types: [{ type: typeOf(Artist.type), maskedFields: ["data.label"] }] },
			'types[0].masked_fields invalid: data.label: music.v1.Artist has no field "label"',
		],
		[
			{ types: [{ type: { group: "music", groupVersion: "v9", kind: "Artist" } }] },
			"types[0].type invalid: resource type music.v9.Artist not registered",
		],
	])("is refused if it can't be: %#", async (wrong, message) => {
		const west = await TestCluster.start({ storage: { kind: "memory" } });
		expect(await outcome(west.export("x", { ...allArtists, ...wrong }))).toBe(
			`InvalidArgument: ${message}`,
		);
	});
});

describe("an import", { timeout: 300_000 }, () => {
	it("leaves out types that its cluster does not know, and names them", async () => {
		const west = await TestCluster.start({ modules: [musicModule(), toursModule()] });
		const east = await TestCluster.start();
		await peer(west, east);
		await west.export("all", {
			...allArtists,
			types: [{ type: typeOf(Tour.type) }, { type: typeOf(Artist.type) }],
		});
		await east.import("all", { peer: "west", export: "all", partition: "west" });
		await west.write(artist("miles"));
		await has(east, "west", "default/miles=jazz");
		const reason = "resource type tours.v1.Tour not registered";
		await eventually(async () =>
			expect(await east.report("all")).toMatchObject({
				leftOutTotal: 1n,
				leftOut: [{ type: "tours.v1.Tour", name: "", reason }],
				copies: { "music.v1.Artist": 1n },
			}),
		);
		await eventually(async () => {
			const { resource } = await east.server.client.read({ id: idOf(Import, "all") });
			expect(resource?.status.peering?.conditions).toMatchObject([
				{ type: "Synced", reason: "Streaming" },
				{ type: "Complete", reason: "LeftOut" },
			]);
		});
	});

	it("does not touch a partition that exists", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await has(east, "west", "default/miles=jazz");
		await east.import("again", { peer: "west", export: "artists", partition: "west" });
		await eventually(async () =>
			expect(await east.report("again")).toMatchObject({ state: "PartitionTaken" }),
		);
		await east.server.client.delete({ id: idOf(Import, "again") });
		await eventually(async () => expect(await east.report("again")).toBeUndefined());
		expect(await east.artists("west")).toEqual(["default/miles=jazz"]);
	});

	it("is passed on only by an export of its partition, with a longer path, and never back", async () => {
		const { west, east } = await importing();
		const north = await TestCluster.start();
		await peer(east, west);
		const { token } = await east
			.peerings()
			.createToken({ name: "north", address: east.server.address });
		await north.peerings().establish({ name: "south", token });
		await west.write(artist("miles"));
		await east.write(artist("own"));
		await has(east, "west", "default/miles=jazz");
		const passedOn = { ...allArtists, peers: ["east", "north"], partition: "west" };
		await east.export("passed-on", passedOn);
		await east.export("own", { ...allArtists, peers: ["east", "north"] });
		for (const cluster of [west, north]) {
			const name = cluster === north ? "south" : "west";
			await cluster.import("passed-on", {
				peer: name,
				export: "passed-on",
				partition: "from-west",
			});
			await cluster.import("own", { peer: name, export: "own", partition: "from-east" });
			await has(cluster, "from-east", "default/own=jazz");
		}
		await has(north, "from-west", "default/miles=jazz");
		const home = await west.artist("miles", "default");
		const { origin } = (await north.artist("miles", "from-west")) ?? {};
		expect(origin).toMatchObject({
			uid: home?.id?.uid,
			version: home?.version,
			partition: "default",
		});
		expect(origin?.path).toHaveLength(2);
		expect(origin?.path[0]).toBe(origin?.cluster);
		await west.write(artist("miles", "blues"));
		await has(north, "from-west", "default/miles=blues");
		await eventually(async () =>
			expect(await west.report("passed-on")).toMatchObject({ state: "Streaming", lagMs: 0n }),
		);
		expect(await west.artists("from-west")).toEqual([]);
	});
});
