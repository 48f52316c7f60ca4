import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@plinth/runtime";
import { expect, it } from "vitest";
import { artist, musicModule } from "../testdata/music.ts";
import { createServer, type Server } from "./server.ts";

it("keeps and counts at start what is stored of types that are not registered", async () => {
	const directory = await mkdtemp(join(tmpdir(), "plinth-unregistered-"));
	const warnings: unknown[] = [];
	const started = async (modules: Parameters<typeof createServer>[0]["modules"] = []) => {
		const server = createServer({
			storage: { kind: "sqlite", directory },
			listen: { host: "127.0.0.1", port: 0 },
			modules,
			logger: { ...silentLogger, warn: (fields) => warnings.push(fields) },
		});
		await server.start();
		return server;
	};
	let server: Server | undefined;
	try {
		server = await started([musicModule()]);
		const { resource } = await server.client.write({ resource: artist("miles") });
		await server.stop();
		expect(warnings).toEqual([]);

		server = await started();
		expect(warnings).toEqual([{ type: "music.v1.Artist", count: 1 }]);
		await server.stop();

		server = await started([musicModule()]);
		const id = resource?.id;
		expect((await server.client.read({ ...(id && { id }) })).resource).toEqual(resource);
	} finally {
		await server?.stop();
		await rm(directory, { recursive: true });
	}
});
