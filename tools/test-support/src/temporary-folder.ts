import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder, which is removed when the test has finished. */
export async function temporaryFolder(): Promise<string> {
	const folder = await mkdtemp(join(tmpdir(), "plinth-test-"));
	// What a killed process has started may still write there.
	const retries = { maxRetries: 100, retryDelay: 100 };
	onTestFinished(() => rm(folder, { recursive: true, force: true, ...retries }));
	return folder;
}
