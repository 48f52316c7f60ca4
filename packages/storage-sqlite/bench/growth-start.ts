/** What the start of a server's storage costs as the stored resources become more. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { computedMicroseconds, GrowthTable, numberOption } from "@plinth/bench";
import { createSqliteBackend } from "../src/index.ts";
import { fill } from "./fill.ts";
import { inTemporaryDirectory } from "./temporary-directory.ts";

await inTemporaryDirectory(async (directory) => {
	const table = new GrowthTable("Start of a storage in sqlite", "µs per resource, all threads");
	const smallest = numberOption("resources", 10_000, 100);
	await table.measure(
		"processor time",
		smallest,
		async (size) => {
			const path = join(directory, "storage.db");
			fill(path, size);
			let close = async () => {};
			const microseconds = await computedMicroseconds(async () => {
				const backend = await createSqliteBackend({ path, limits: { memoryBytes: 2 ** 33 } });
				close = () => backend.close();
			});
			await close();
			await rm(path);
			return microseconds / size;
		},
		{ rounds: 1 },
	);
	table.print();
});
