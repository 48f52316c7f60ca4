import { Import } from "@plinth/peering";
import { idOf, typeOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Artist, artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import { documentedMetrics, metricsWith } from "../operations/metrics-with-prefix.fixture.ts";
import { allArtists, eventually, peer, TestCluster } from "./two-clusters.fixture.ts";

const prefix = "plinth_peering_";
const metricsOf = ({ server }: TestCluster) => metricsWith(prefix, server);

describe("the metrics of peerings", { timeout: 300_000 }, () => {
	it("tell of both sides what is copied, and how far it is behind", async () => {
		const west = await TestCluster.start({ modules: [musicModule(), toursModule()] });
		const east = await TestCluster.start();
		await peer(west, east);
		const types = [{ type: typeOf(Artist.type) }, { type: typeOf(Tour.type) }];
		await west.export("all", { ...allArtists, types });
		await west.write(artist("miles"));
		await west.write(artist("ella"));
		expect(await metricsOf(east)).toEqual({});
		await east.import("music", { peer: "west", export: "all", partition: "west" });
		const imported = await eventually(async () => {
			const now = await metricsOf(east);
			expect(now).toMatchObject({
				import_state: { "music Streaming": 1 },
				import_lag_seconds: { music: 0 },
				import_age_seconds: { music: expect.any(Number) },
				import_copies: { "music music.v1.Artist": 2 },
				import_left_out: { music: 1 },
			});
			return now;
		});
		const exported = await eventually(async () => {
			const now = await metricsOf(west);
			expect(now).toMatchObject({
				export_streams: { "east all": 1 },
				export_unacknowledged: { "east all": 0 },
				export_lag_seconds: { "east all": 0 },
			});
			return now;
		});
		// The start of the stream, and a snapshot of two artists.
		expect(imported.import_messages_total?.music).toBeGreaterThanOrEqual(5);
		expect(exported.export_messages_total?.["east all"]).toBeGreaterThanOrEqual(5);
		expect([...Object.keys(imported), ...Object.keys(exported)].sort()).toEqual(
			documentedMetrics(prefix),
		);

		await west.stop();
		await eventually(async () => {
			const now = await metricsOf(east);
			expect(now.import_state).toEqual({ "music Unreachable": 1 });
			expect(now.import_copies).toEqual({ "music music.v1.Artist": 2 });
			expect(now.import_lag_seconds?.music).toBeGreaterThan(0);
		});
		await east.server.client.delete({ id: idOf(Import, "music") });
		const received = { import_messages_total: { music: expect.any(Number) } };
		await eventually(async () => expect(await metricsOf(east)).toEqual(received));
	});

	it("show an Export whose peer has left", async () => {
		const west = await TestCluster.start();
		const east = await TestCluster.start();
		await peer(west, east);
		await west.export("artists", allArtists);
		await east.import("artists", { peer: "west", export: "artists", partition: "west" });
		await eventually(async () =>
			expect((await metricsOf(west)).export_streams).toEqual({ "east artists": 1 }),
		);
		const sent = (await metricsOf(west)).export_messages_total?.["east artists"] ?? 0;
		await east.stop();
		const left = await eventually(async () => {
			const now = await metricsOf(west);
			expect(now).toMatchObject({
				export_streams: { "east artists": 0 },
				export_unacknowledged: { "east artists": 0 },
			});
			return now;
		});
		expect(left.export_messages_total?.["east artists"]).toBeGreaterThanOrEqual(sent);
	});
});
