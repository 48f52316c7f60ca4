import { fileURLToPath } from "node:url";
import { createServer, loadModule, type Server } from "@plinth/server";
import { onTestFinished } from "vitest";

const moduleFile = fileURLToPath(
	new URL("../../../examples/catalog/src/module.ts", import.meta.url),
);

/** Starts a server with the catalog within the test, on a port, any where it is 0. */
export async function startCatalogServer(directory: string, port = 0): Promise<Server> {
	const server = createServer({
		storage: { kind: "sqlite", directory },
		listen: { host: "127.0.0.1", port },
		modules: [await loadModule(moduleFile)],
	});
	await server.start();
	onTestFinished(() => server.stop());
	return server;
}
