import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs something in a new directory, which is removed afterwards. */
export async function inTemporaryDirectory(
	run: (directory: string) => Promise<void>,
): Promise<void> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
	try {
		await run(directory);
	} finally {
		await rm(directory, { recursive: true });
	}
}
