import { create } from "@bufbuild/protobuf";
import { Import } from "@plinth/peering";
import { StatusSchema } from "@plinth/proto";
import { addFinalizer, idOf, Namespace, resourceOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { eventually, importing } from "./two-clusters.fixture.ts";

describe("an import", { timeout: 300_000 }, () => {
	it("has copies of what is exported, and follows each change", async () => {
		const { west, east } = await importing();
		const has = (...artists: readonly string[]) =>
			eventually(async () => expect(await east.artists("west")).toEqual(artists));
		await west.write(artist("miles"));
		await has("default/miles=jazz");
		await west.write(artist("miles", "blues"));
		await west.write(resourceOf(Namespace, { id: idOf(Namespace, "lounge") }));
		const inLounge = idOf(Artist, "ella", { namespace: "lounge" });
		await west.write({ ...artist("ella"), id: inLounge });
		await has("default/miles=blues", "lounge/ella=jazz");
		await west.server.client.delete({ id: inLounge });
		await has("default/miles=blues");
		await west.server.client.delete({ id: idOf(Artist, "miles") });
		await west.write(artist("miles", "funk"));
		await has("default/miles=funk");
	});

	it("copies metadata, status and generation; uid and version are its own; what belongs to home stays there", async () => {
		const { west, east } = await importing();
		const written = artist("miles");
		written.metadata.label = "prestige";
		addFinalizer(written, "demo/held");
		const { resource: original } = await west.write(written);
		const status = create(StatusSchema, { observedGeneration: original?.generation ?? "" });
		const originalId = original?.id ?? idOf(Artist, "miles");
		await west.server.client.writeStatus({ id: originalId, key: "demo", status });
		const home = await west.artist("miles", "default");
		const copy = await eventually(async () => {
			const found = await east.artist("miles", "west");
			expect(found?.status.demo).toBeDefined();
			return found;
		});
		expect(copy).toMatchObject({
			metadata: { label: "prestige" },
			status: home?.status ?? {},
			generation: home?.generation,
			data: home?.data,
			origin: { uid: home?.id?.uid, version: home?.version, partition: "default", peering: "west" },
		});
		expect(Object.keys(copy?.metadata ?? {})).toEqual(["label"]);
		expect(copy?.id?.uid).not.toBe(home?.id?.uid);
		await west.server.client.delete({ id: idOf(Artist, "miles") });
		await eventually(async () =>
			expect((await east.artist("miles", "west"))?.origin?.version).not.toBe(home?.version),
		);
		expect(Object.keys((await east.artist("miles", "west"))?.metadata ?? {})).toEqual(["label"]);
	});

	it("refuses writes of others, and names the home", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await eventually(() => east.artist("miles", "west"));
		const id = idOf(Artist, "miles", { partition: "west" });
		expect(await outcome(east.server.client.delete({ id }))).toMatch(
			/^FailedPrecondition: music.v1.Artist west\/default\/miles is a copy: change the original, music.v1.Artist default\/default\/miles in the cluster \w{26}, copied from the peering west$/,
		);
		expect(await outcome(east.write({ ...artist("ella"), id: { ...id, name: "ella" } }))).toMatch(
			/^FailedPrecondition: tenancy.v1.Partition west is only written by an import/,
		);
	});

	it("has all of more resources than a window or a commit has room for, and removes them all", async () => {
		const { west, east } = await importing();
		const names = Array.from({ length: 2_500 }, (_, at) => `a${at}`).sort();
		for (let at = 0; at < names.length; at += 100) {
			await Promise.all(names.slice(at, at + 100).map((name) => west.write(artist(name))));
		}
		const all = names.map((name) => `default/${name}=jazz`);
		await eventually(async () => expect(await east.artists("west")).toEqual(all));
		await eventually(async () =>
			expect(await east.report("artists")).toMatchObject({
				...{ state: "Streaming", lagMs: 0n },
				copies: { "music.v1.Artist": BigInt(names.length) },
			}),
		);
		await east.server.client.delete({ id: idOf(Import, "artists") });
		await eventually(async () => expect(await east.artists("west")).toEqual([]));
		await eventually(async () =>
			expect(await outcome(east.artist("a1", "west"))).toBe("NotFound: partition not found: west"),
		);
	});

	it("takes its copies away when it is removed, and nothing else", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await east.write(artist("own"));
		await eventually(() => east.artist("miles", "west"));
		await east.server.client.delete({ id: idOf(Import, "artists") });
		await eventually(async () =>
			expect(await outcome(east.artist("miles", "west"))).toBe(
				"NotFound: partition not found: west",
			),
		);
		expect(await east.artists("*")).toEqual(["default/own=jazz"]);
		expect(await west.artists("*")).toEqual(["default/miles=jazz"]);
	});
});
