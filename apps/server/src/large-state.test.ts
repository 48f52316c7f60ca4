import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { artist, musicModule } from "../testdata/music.ts";
import { createServer, StartInterrupted } from "./server.ts";
import { musicModuleFile, ServerProcess } from "./server-process.fixture.ts";

async function emptyFolder(): Promise<string> {
	const folder = await mkdtemp(join(tmpdir(), "plinth-state-"));
	onTestFinished(() => rm(folder, { recursive: true, force: true }));
	return folder;
}

function serverOn(folder: string, memoryLimitBytes?: number) {
	return createServer({
		storage: { kind: "sqlite", directory: folder },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [musicModule()],
		...(memoryLimitBytes !== undefined && { memoryLimitBytes }),
	});
}

it("a state over the memory limit ends the start, which says how much it is and what to do", async () => {
	const folder = await emptyFolder();
	const filling = serverOn(folder);
	await filling.start();
	await Promise.all(
		Array.from({ length: 300 }, (_, index) =>
			filling.client.write({ resource: artist(`artist-${index}`, "x".repeat(1000)) }),
		),
	);
	await filling.stop();

	const server = new ServerProcess(
		...["--listen", "127.0.0.1:0", "--data-dir", folder, "--module", musicModuleFile],
		...["--memory-limit", "100KiB"],
	);
	const { code, stderr } = await server.ended;
	expect(stderr).toMatch(
		/^plinth-server: the state does not fit into the memory limit: \d+ of 30\d resources take \d+ bytes, and the limit is 102400 bytes; raise it \(--memory-limit\)$/m,
	);
	expect(code).toBe(1);

	const larger = serverOn(folder, 10 * 1024 * 1024);
	await larger.start();
	await larger.stop();
});

it("a stop ends a start that loads the storage, and the storage can be opened again", async () => {
	const folder = await emptyFolder();
	const first = serverOn(folder);
	const starting = first.start();
	const stopped = first.stop();
	await expect(starting).rejects.toThrow(StartInterrupted);
	await stopped;
	await first.ended;
	const second = serverOn(folder);
	await second.start();
	await second.stop();
});
