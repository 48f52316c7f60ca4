import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../testdata/music.ts";
import { createServer } from "./server.ts";
import { musicModuleFile, ServerProcess } from "./server-process.fixture.ts";

const total = 100_000;

it("a start with 100,000 resources reports progress", async () => {
	const folder = await mkdtemp(join(tmpdir(), "plinth-start-"));
	onTestFinished(() => rm(folder, { recursive: true, force: true }));
	const filling = createServer({
		storage: { kind: "sqlite", directory: folder },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [musicModule()],
	});
	await filling.start();
	for (let begun = 0; begun < total; begun += 1_000) {
		await Promise.all(
			Array.from({ length: 1_000 }, (_, index) =>
				filling.client.write({ resource: artist(`artist-${begun + index}`) }),
			),
		);
	}
	await filling.stop();

	const startMs = performance.now();
	const server = new ServerProcess(
		...["--listen", "127.0.0.1:0", "--data-dir", folder, "--module", musicModuleFile],
	);
	const address = await server.listening();
	const readyMs = Math.round(performance.now() - startMs);
	process.stdout.write(`ready after ${readyMs} ms with ${total} resources\n`);
	// About a line a second while it loads, and one when it has.
	const lines = server.stderr
		.split("\n")
		.filter((line) => line.includes('"msg":"loading the storage"'));
	const { resources, tookMs } = JSON.parse(
		server.stderr.split("\n").find((line) => line.includes('"msg":"storage loaded"')) ?? "{}",
	);
	expect(resources).toBeGreaterThanOrEqual(total);
	if (tookMs > 2_000) {
		expect(lines).not.toEqual([]);
	}
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
	const { version } = await client.list({ type: typeOf(Artist.type), tenancy: {}, pageSize: 1 });
	expect(Number(version)).toBeGreaterThanOrEqual(total);
});
