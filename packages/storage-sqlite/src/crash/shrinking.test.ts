import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { seededRandom } from "@plinth/runtime/testing";
import { allArtists, artist } from "@plinth/storage/testing";
import { expect, it, vi } from "vitest";
import { testDirectory } from "../directory.fixture.ts";
import { deleteMost, keptArtists, openAgain, writeMany } from "../file/large-storage.fixture.ts";
import { createSqliteBackend } from "../sqlite-backend.ts";

/** Opens the storage in a process that gives its space back, and kills it after a while. */
async function killWhileShrinking(path: string, afterMs: number): Promise<void> {
	const script = new URL("./shrinking.fixture.ts", import.meta.url).pathname;
	const child = spawn(process.execPath, [script, path], { stdio: ["ignore", "pipe", "inherit"] });
	child.stdout.once("data", () => setTimeout(() => child.kill("SIGKILL"), afterMs));
	await once(child, "close");
}

it("a storage shrinks while it is open, and is whole if its process is killed meanwhile", async () => {
	await using directory = await testDirectory();
	const path = directory.file("storage.db");
	writeMany(path);
	const writer = openAgain(path);
	deleteMost(writer);
	writer.close();
	const random = seededRandom(8);
	// The first step comes 200 ms after the start.
	for (let round = 0; round < 3; round++) {
		await killWhileShrinking(path, 195 + random.next() * 30);
	}
	const backend = await createSqliteBackend({ path });
	const { resources } = await backend.list(allArtists);
	expect(resources.map(({ id }) => id?.name)).toEqual([...keptArtists].sort());
	await vi.waitFor(async () => expect((await stat(path)).size).toBeLessThan(2 ** 21), 300_000);
	await backend.commit([{ op: "put", resource: artist("after"), expectedVersion: "" }]);
	await backend.close();
	const again = await createSqliteBackend({ path });
	expect((await again.list(allArtists)).resources).toHaveLength(keptArtists.length + 1);
	await again.close();
});
