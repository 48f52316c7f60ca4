import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import type { StorageBackend } from "@plinth/storage";
import { createEtcdBackend } from "@plinth/storage-etcd";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import { describeWith } from "@plinth/test-support";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { artist } from "../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "./server-process.fixture.ts";
import { databaseFile } from "./storage/open-storage.ts";

const total = 100_000;
const perCommit = 100;

/** Puts the artists into a storage. */
async function fill(backend: StorageBackend): Promise<void> {
	const batchSize = 20_000;
	for (let begun = 0; begun < total; begun += batchSize) {
		await Promise.all(
			Array.from({ length: batchSize / perCommit }, (_, commit) =>
				backend.commit(
					Array.from({ length: perCommit }, (_, each) => {
						const resource = artist(`artist-${begun + commit * perCommit + each}`);
						if (resource.id !== undefined) {
							resource.id.uid = "01J9ZZZZZZZZZZZZZZZZZZZZZZ";
						}
						return { op: "put", resource, expectedVersion: "" } as const;
					}),
				),
			),
		);
	}
	await backend.close();
}

/** Stops a server while it loads: it ends before it has loaded all. Prints how long that took. */
async function interrupt(server: ServerProcess, storage: string): Promise<void> {
	await server.logs(/"msg":"loading the storage"/);
	const sinceMs = performance.now();
	server.kill("SIGTERM");
	const { code, signal, stderr } = await server.ended;
	const tookMs = Math.round(performance.now() - sinceMs);
	process.stdout.write(`SIGTERM while ${storage} is loaded: ended after ${tookMs} ms\n`);
	expect(stderr).not.toContain('"msg":"storage loaded"');
	expect({ code, signal }).toEqual({ code: 0, signal: null });
}

describe(`a state of ${total} resources in a file`, () => {
	let folder: string;
	let flags: readonly string[];
	beforeAll(async () => {
		folder = await mkdtemp(join(tmpdir(), "plinth-state-"));
		flags = ["--listen", "127.0.0.1:0", "--data-dir", folder, "--module", musicModuleFile];
		await fill(await createSqliteBackend({ path: join(folder, databaseFile) }));
	});
	afterAll(() => rm(folder, { recursive: true, force: true }));

	it("stops loading on SIGTERM", async () => {
		await interrupt(new ServerProcess(...flags), "sqlite");
	});

	it("is served after a start that reports progress", async () => {
		const startMs = performance.now();
		const server = new ServerProcess(...flags);
		const address = await server.listening();
		const readyMs = Math.round(performance.now() - startMs);
		process.stdout.write(`ready after ${readyMs} ms with ${total} resources\n`);
		const lines = server.stderr.split("\n");
		const loaded = lines.find((line) => line.includes('"msg":"storage loaded"')) ?? "{}";
		const { resources, tookMs } = JSON.parse(loaded);
		expect(resources).toBeGreaterThanOrEqual(total);
		// About a line a second while it loads, and one when it has.
		if (tookMs > 2_000) {
			expect(lines.some((line) => line.includes('"msg":"loading the storage"'))).toBe(true);
		}
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		const last = artist(`artist-${total - 1}`).id;
		expect((await client.read({ id: last })).resource?.id?.name).toBe(last?.name);
	});

	it("that does not fit into the heap ends the start with an error, not an abort of V8", async () => {
		const { NODE_OPTIONS } = process.env;
		process.env.NODE_OPTIONS = "--max-old-space-size=100";
		let server: ServerProcess;
		try {
			server = new ServerProcess(...flags);
		} finally {
			process.env.NODE_OPTIONS = NODE_OPTIONS ?? "";
		}
		const { code, signal, stderr } = await server.ended;
		process.stdout.write(
			`${stderr.split("\n").find((line) => line.startsWith("plinth-server"))}\n`,
		);
		expect(stderr).toMatch(
			/^plinth-server: the state does not fit into the heap of Node: \d+ of 100\d+ resources take \d+ bytes and fill \d+ MiB of a heap of 10\d MiB; give Node a larger heap, as with NODE_OPTIONS=--max-old-space-size=\d+$/m,
		);
		expect(stderr).not.toContain("FATAL ERROR");
		expect({ code, signal }).toEqual({ code: 1, signal: null });
	});
});

describeWith("etcd")(`a state of ${total} resources in etcd`, () => {
	it("stops loading on SIGTERM", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		await fill(await createEtcdBackend({ endpoints: [etcd.url], requestTimeoutMs: 120_000 }));
		const server = new ServerProcess(
			...["--listen", "127.0.0.1:0", "--module", musicModuleFile],
			...["--storage", "etcd", "--etcd-endpoints", etcd.url],
		);
		await interrupt(server, "etcd");
	});
});
