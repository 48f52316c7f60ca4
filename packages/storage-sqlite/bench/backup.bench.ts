// Backup and restore of an open storage while 16 writers commit: how long they take, and what they do to
// the latency of commits, next to commits alone in the same run. `--resources=200000 --seconds=3`
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { format, latencyCells, numberOption } from "@plinth/bench";
import { CasFailure } from "@plinth/storage";
import { createSqliteBackend } from "../src/index.ts";
import { fill, nthArtist } from "./fill.ts";

const size = numberOption("resources", 200_000, 2_000);
const seconds = numberOption("seconds", 3, 0.2);
const writers = 16;

const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
const path = join(directory, "storage.db");
fill(path, size);
const backend = await createSqliteBackend({ path });

/** Lets the writers commit until something has settled. */
async function commitDuring(done: Promise<unknown>) {
	let ended = false;
	void done.finally(() => {
		ended = true;
	});
	const latenciesMs: number[] = [];
	const startMs = performance.now();
	await Promise.all(
		Array.from({ length: writers }, async (_, writer) => {
			for (let step = 0; !ended; step++) {
				const resource = nthArtist((writer * 7919 + step * 101) % size);
				const beginMs = performance.now();
				const stored = resource.id && (await backend.read(resource.id));
				const expectedVersion = stored?.version ?? "";
				try {
					await backend.commit([{ op: "put", resource, expectedVersion }]);
				} catch (error) {
					if (!(error instanceof CasFailure)) {
						throw error;
					}
				}
				latenciesMs.push(performance.now() - beginMs);
			}
		}),
	);
	const tookMs = performance.now() - startMs;
	await done;
	return {
		"took ms": Math.round(tookMs),
		"commits a second": format((latenciesMs.length * 1000) / tookMs),
		...latencyCells(latenciesMs),
	};
}

const to = join(directory, "backup.db");
console.table({
	"commits alone": await commitDuring(
		new Promise((resolve) => {
			setTimeout(resolve, seconds * 1000);
		}),
	),
	[`and a backup of ${size}`]: await commitDuring(backend.backup({ to })),
	[`and a restore of ${size}`]: await commitDuring(backend.restore({ from: to })),
});
await backend.close();
await rm(directory, { recursive: true });
