import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { BackupService } from "@plinth/proto";
import { createServer } from "@plinth/server";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { runPlinth, startPlinth } from "../run-plinth.fixture.ts";

let folder: string;
beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "plinth-backup-"));
	return () => rm(folder, { recursive: true, force: true });
});

type Storage = Parameters<typeof createServer>[0]["storage"];

async function startStoring(storage: Storage): Promise<string> {
	const server = createServer({ storage, listen: { host: "127.0.0.1", port: 0 } });
	await server.start();
	onTestFinished(() => server.stop());
	return server.address;
}

/** A server whose backup is one chunk, and then nothing. */
async function startStalling(): Promise<{ readonly address: string; break(): void }> {
	const server = createHttp2Server(
		connectNodeAdapter({
			routes: (router) =>
				router.service(BackupService, {
					async *backup(_request, { signal }) {
						yield { part: { case: "taken", value: { sizeBytes: 10n } } };
						yield { part: { case: "chunk", value: Uint8Array.of(1) } };
						await new Promise((resolve) => signal.addEventListener("abort", resolve));
					},
				}),
		}),
	);
	const sessions: { destroy(): void }[] = [];
	server.on("session", (session) => sessions.push(session));
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const close = () => {
		for (const session of sessions) {
			session.destroy();
		}
	};
	onTestFinished(() => {
		close();
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { address: `http://127.0.0.1:${port}`, break: close };
}

/** Resolves once the folder has a file whose name begins so, with something in it. */
function appears(prefix: string) {
	return expect.poll(async () => {
		const name = (await readdir(folder)).find((each) => each.startsWith(prefix));
		return name === undefined ? 0 : (await stat(join(folder, name))).size;
	});
}

describe("backup", () => {
	it("writes a file that only its owner can read, and nothing else", async () => {
		const server = await startStoring({ kind: "sqlite", directory: join(folder, "data") });
		const file = join(folder, "copy.sqlite");
		const result = await runPlinth(["backup", file, "--server", server]);
		expect(result).toMatchObject({ code: 0, err: "" });
		expect(result.out).toMatch(/copy\.sqlite contains \d+ resources at version \d+\n$/);
		expect((await readFile(file)).subarray(0, 15).toString()).toBe("SQLite format 3");
		expect((await stat(file)).mode & 0o777).toBe(0o600);
		expect((await readdir(folder)).sort()).toEqual(["copy.sqlite", "data"]);
	});

	it("leaves a file of that name as it is, and says where it can't write", async () => {
		const file = join(folder, "copy.sqlite");
		await writeFile(file, "mine");
		const taken = await runPlinth(["backup", file]);
		expect(taken.code).toBe(2);
		expect(taken.err).toContain("already exists");
		expect(await readFile(file, "utf8")).toBe("mine");
		const nowhere = await runPlinth(["backup", join(folder, "no", "copy")]);
		expect(nowhere.code).toBe(2);
		expect(nowhere.err).toMatch(/can't write .*: its folder does not exist/);
	});

	it("says what to do where the server has nothing to back up", async () => {
		const server = await startStoring({ kind: "memory" });
		const result = await runPlinth(["backup", join(folder, "copy"), "--server", server]);
		expect(result.code).toBe(1);
		expect(result.err).toContain("start the server with --storage sqlite");
		expect(await readdir(folder)).toEqual([]);
	});

	it("keeps nothing where the connection breaks, and says that the server is gone", async () => {
		const server = await startStalling();
		const run = startPlinth(["backup", join(folder, "copy"), "--server", server.address]);
		await appears("copy.partial-").toBe(1);
		server.break();
		expect((await run.ended).code).toBe(6);
		expect(await readdir(folder)).toEqual([]);
	});

	it("keeps nothing where it is interrupted", async () => {
		const server = await startStalling();
		const run = startPlinth(["backup", join(folder, "copy"), "--server", server.address]);
		await appears("copy.partial-").toBe(1);
		run.interrupt();
		expect((await run.ended).code).toBe(130);
		expect(await readdir(folder)).toEqual([]);
	});
});
