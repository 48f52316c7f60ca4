import { join } from "node:path";
import { idOf } from "@plinth/resource";
import { backupFile, restoreFile } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { databaseFile } from "../storage/open-storage.ts";
import { eventually, importing, type TestCluster } from "./two-clusters.fixture.ts";

const has = (east: TestCluster, ...artists: readonly string[]) =>
	eventually(async () => expect(await east.artists("west")).toEqual(artists));

/** Until the import has recorded that it is up to date. */
const isCurrent = (east: TestCluster) =>
	eventually(async () => {
		const report = await east.report("artists");
		expect(report).toMatchObject({ state: "Streaming", message: "", lagMs: 0n });
		return report;
	});

describe("an import resumes, without a second snapshot", { timeout: 300_000 }, () => {
	it("when its own cluster was restarted, after what it has stored", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await west.write(artist("nina"));
		await has(east, "default/miles=jazz", "default/nina=jazz");
		expect(await isCurrent(east)).toMatchObject({ snapshots: 1n, resumptions: 0n });
		const before = await east.artist("miles", "west");
		await east.stop();
		await west.write(artist("ella"));
		await west.server.client.delete({ id: idOf(Artist, "nina") });
		await east.startAgain();
		await has(east, "default/ella=jazz", "default/miles=jazz");
		expect(await isCurrent(east)).toMatchObject({ snapshots: 1n, resumptions: 1n });
		expect(await east.artist("miles", "west")).toEqual(before);
	});

	it("when the other cluster was restarted, which sends only what has changed", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await west.write(artist("nina"));
		await has(east, "default/miles=jazz", "default/nina=jazz");
		await isCurrent(east);
		const before = await east.artist("miles", "west");
		await west.stop();
		await eventually(async () =>
			expect(await east.report("artists")).toMatchObject({ state: "Unreachable" }),
		);
		expect(await east.artists("west")).toEqual(["default/miles=jazz", "default/nina=jazz"]);
		await west.startAgain();
		await west.write(artist("ella"));
		await west.server.client.delete({ id: idOf(Artist, "nina") });
		await has(east, "default/ella=jazz", "default/miles=jazz");
		const report = await isCurrent(east);
		expect(report?.snapshots).toBe(1n);
		expect(report?.resumptions).toBeGreaterThan(0n);
		expect(await east.artist("miles", "west")).toEqual(before);
	});

	it("when the other cluster was restarted after changes that the import has missed", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await west.write(artist("nina"));
		await has(east, "default/miles=jazz", "default/nina=jazz");
		await isCurrent(east);
		const before = await east.artist("miles", "west");
		await east.stop();
		await west.write(artist("ella"));
		await west.server.client.delete({ id: idOf(Artist, "nina") });
		await west.stop();
		await west.startAgain();
		await east.startAgain();
		await has(east, "default/ella=jazz", "default/miles=jazz");
		expect(await isCurrent(east)).toMatchObject({ snapshots: 1n, resumptions: 1n });
		expect(await east.artist("miles", "west")).toEqual(before);
	});
});

describe("a cluster that was restored from a backup", { timeout: 300_000 }, () => {
	it("is found out by its importer, which takes everything again and removes what is lost", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await has(east, "default/miles=jazz");
		const path = join(west.directory, databaseFile);
		const backup = join(await temporaryFolder(), "backup.sqlite");
		await west.stop();
		await backupFile({ path, to: backup });
		await west.startAgain();
		await west.write(artist("ella"));
		await west.write(artist("miles", "blues"));
		await has(east, "default/ella=jazz", "default/miles=blues");
		await west.stop();
		await restoreFile({ path, from: backup });
		await west.startAgain();
		await has(east, "default/miles=jazz");
		expect((await isCurrent(east))?.snapshots).toBe(2n);
		await west.write(artist("miles", "funk"));
		await has(east, "default/miles=funk");
	});

	it("continues to import after the position that its backup has", async () => {
		const { west, east } = await importing();
		await west.write(artist("miles"));
		await has(east, "default/miles=jazz");
		await isCurrent(east);
		const path = join(east.directory, databaseFile);
		const backup = join(await temporaryFolder(), "backup.sqlite");
		await east.stop();
		await backupFile({ path, to: backup });
		await east.startAgain();
		await west.write(artist("ella"));
		await west.write(artist("miles", "blues"));
		await has(east, "default/ella=jazz", "default/miles=blues");
		await east.stop();
		await restoreFile({ path, from: backup });
		await west.server.client.delete({ id: idOf(Artist, "ella") });
		await east.startAgain();
		await has(east, "default/miles=blues");
		expect(await isCurrent(east)).toMatchObject({ snapshots: 1n });
	});
});
