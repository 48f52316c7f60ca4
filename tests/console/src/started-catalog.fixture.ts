import type { ServerOptions } from "@plinth/server";
import { onTestFinished } from "vitest";
import { type CatalogServer, startCatalogServer } from "./catalog-server.ts";

/** A server with the catalog, which is stopped when the test is over. */
export async function startCatalog(options: Partial<ServerOptions> = {}): Promise<CatalogServer> {
	const started = await startCatalogServer(options);
	onTestFinished(() => started.server.stop());
	return started;
}
