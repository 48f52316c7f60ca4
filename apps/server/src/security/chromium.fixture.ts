import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "@plinth/test-support";
import { onTestFinished } from "vitest";
import { createViteServer } from "vitest/node";
import type { Outcomes } from "../../testdata/browser/calls.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));

/** A server of the page in `testdata/browser`. */
export interface PageServer {
	readonly port: number;
	/** Opens the page under this origin, and resolves to what comes of its calls to the server at `address`. */
	open(origin: string, address: string): Promise<Outcomes>;
}

/** Serves the page on all names of this machine until the test ends. */
export async function startPageServer(): Promise<PageServer> {
	let outcomes = Promise.withResolvers<Outcomes>();
	const server = await createViteServer({
		root,
		configFile: false,
		logLevel: "error",
		optimizeDeps: { noDiscovery: true },
		server: { host: "127.0.0.1", hmr: false, ws: false, watch: null },
		plugins: [
			{
				name: "outcomes",
				configureServer({ middlewares }) {
					middlewares.use("/outcomes", async (request, response) => {
						outcomes.resolve(JSON.parse(await text(request)));
						response.end();
					});
				},
			},
		],
	});
	await server.listen(0);
	onTestFinished(() => server.close());
	const address = server.httpServer?.address();
	const port = address !== null && typeof address === "object" ? address.port : 0;
	return {
		port,
		async open(origin, called) {
			outcomes = Promise.withResolvers();
			const query = new URLSearchParams({ address: called });
			const ended = openInChromium(`${origin}/apps/server/testdata/browser/index.html?${query}`);
			return Promise.race([outcomes.promise, ended]);
		},
	};
}

/** Opens a page until the test ends. Rejects if Chromium ends before. */
async function openInChromium(url: string): Promise<never> {
	const folder = await temporaryFolder();
	const flags = [
		...["--headless", "--no-first-run", "--disable-background-networking"],
		// Tests may run as root, and with certificates of their own.
		...["--no-sandbox", "--disable-dev-shm-usage", "--ignore-certificate-errors"],
		`--user-data-dir=${folder}`,
	];
	const child = spawn("chromium", [...flags, url], { stdio: ["ignore", "ignore", "pipe"] });
	const printed = text(child.stderr);
	const closed = once(child, "close");
	onTestFinished(async () => {
		child.kill("SIGTERM");
		await closed;
	});
	await closed;
	throw new Error(`Chromium has ended: ${await printed}`);
}
