import { join } from "node:path";
import { backupFile, restoreFile } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { databaseFile } from "../storage/open-storage.ts";
import { patiently, startTwoRegions, type TestRegion } from "./two-regions.fixture.ts";

/** Two regions on sqlite; the west has copies in the east. */
async function startStored() {
	const [westFolder, eastFolder] = [await temporaryFolder(), await temporaryFolder()];
	const storage = (directory: string) => ({ storage: { kind: "sqlite", directory } as const });
	const { west, east } = await startTwoRegions({
		west: storage(westFolder),
		east: storage(eastFolder),
	});
	await west.write("miles", "jazz");
	await west.write("nico", "rock");
	await east.write("miles", "local");
	await west.partitionPolicy("default", "r2");
	await expect.poll(() => east.artists("r1"), patiently).toHaveLength(2);
	await expect.poll(async () => (await east.report("r1"))?.lagMs, patiently).toBe(0n);
	return {
		west: { region: west, path: join(westFolder, databaseFile) },
		east: { region: east, path: join(eastFolder, databaseFile) },
	};
}

type StoredRegion = Awaited<ReturnType<typeof startStored>>["west"];

/** Stops a region, and takes a backup of it. */
async function backUp({ region, path }: StoredRegion): Promise<string> {
	await region.server.stop();
	const backup = join(await temporaryFolder(), "backup.sqlite");
	await backupFile({ path, to: backup });
	return backup;
}

const stateOf = async (region: TestRegion) => (await region.report("r1"))?.state;

describe("copies of a region", { timeout: 300_000 }, () => {
	it("stay while it is down, and continue after what is stored when it is back", async () => {
		const { west, east } = await startStored();
		await west.region.server.stop();
		await expect.poll(() => stateOf(east.region), patiently).toBe("Unreachable");
		expect(await east.region.artists("r1")).toEqual([
			"r1:default/miles=jazz",
			"r1:default/nico=rock",
		]);
		const before = await east.region.report("r1");
		await west.region.restart();
		await west.region.write("miles", "cool");
		await west.region.delete("nico");
		await expect
			.poll(() => east.region.artists("r1"), patiently)
			.toEqual(["r1:default/miles=cool"]);
		const after = await east.region.report("r1");
		expect(after?.snapshots).toBe(before?.snapshots);
		expect(after?.resumptions).toBeGreaterThan(before?.resumptions ?? 0n);
	});

	it("are still there when the region that holds them is restarted, and follow what it has missed", async () => {
		const { west, east } = await startStored();
		await east.region.server.stop();
		await west.region.write("miles", "cool");
		await west.region.write("otis", "soul");
		await west.region.delete("nico");
		await east.region.restart();
		expect(await east.region.artists("r1")).toHaveLength(2);
		await expect
			.poll(() => east.region.artists("*"), patiently)
			.toEqual([":default/miles=local", "r1:default/miles=cool", "r1:default/otis=soul"]);
	});

	it("go when the policy was taken away while the region that holds them was down", async () => {
		const { west, east } = await startStored();
		await east.region.server.stop();
		await west.region.partitionPolicy("default");
		await east.region.restart();
		await expect.poll(() => east.region.artists("*"), patiently).toEqual([":default/miles=local"]);
		await expect.poll(() => east.region.report("r1"), patiently).toBe(undefined);
	});

	it("are those of the backup after the region was restored from one", async () => {
		const { west, east } = await startStored();
		const backup = await backUp(west);
		await west.region.restart();
		await west.region.write("otis", "soul");
		await west.region.delete("nico");
		await expect
			.poll(() => east.region.artists("r1"), patiently)
			.toEqual(["r1:default/miles=jazz", "r1:default/otis=soul"]);
		await west.region.server.stop();
		await restoreFile({ path: west.path, from: backup });
		await west.region.restart();
		await expect
			.poll(() => east.region.artists("*"), patiently)
			.toEqual([":default/miles=local", "r1:default/miles=jazz", "r1:default/nico=rock"]);
		// The restored deployment has another uid, and is followed.
		await west.region.write("miles", "cool");
		await expect
			.poll(() => east.region.artists("r1"), patiently)
			.toEqual(["r1:default/miles=cool", "r1:default/nico=rock"]);
	});

	it("catch up after the region that holds them was restored from a backup", async () => {
		const { west, east } = await startStored();
		const backup = await backUp(east);
		await east.region.restart();
		await west.region.write("otis", "soul");
		await west.region.delete("nico");
		await expect
			.poll(() => east.region.artists("r1"), patiently)
			.toEqual(["r1:default/miles=jazz", "r1:default/otis=soul"]);
		await east.region.server.stop();
		await restoreFile({ path: east.path, from: backup });
		await east.region.restart();
		await expect
			.poll(() => east.region.artists("*"), patiently)
			.toEqual([":default/miles=local", "r1:default/miles=jazz", "r1:default/otis=soul"]);
	});
});
