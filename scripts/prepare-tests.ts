/**
 * Fills Node's compile cache (`NODE_COMPILE_CACHE`) with what servers and command lines load that tests start. Most of
 * those are killed, and never write it. A server that has started leaves the functions that a start needs, too.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const inRoot = (path: string) => join(root, path);

/** Starts a server with a module, runs a command line against it, and stops it. */
async function runServer(module: string, ...imported: readonly string[]): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "plinth-prepare-"));
	const server = spawn(
		process.execPath,
		[
			...imported.flatMap((file) => ["--import", pathToFileURL(inRoot(file)).href]),
			inRoot("apps/server/src/main.ts"),
			...["--listen", "127.0.0.1:0", "--data-dir", join(folder, "data")],
			...["--module", inRoot(module)],
		],
		{ stdio: ["ignore", "pipe", "ignore"] },
	);
	const ended = once(server, "exit");
	try {
		for await (const line of createInterface({ input: server.stdout })) {
			const address = /http:\/\/\S+/.exec(line)?.[0];
			if (address !== undefined) {
				const command = ["get", "Namespace", "--server", address];
				execFileSync(process.execPath, [inRoot("apps/cli/src/main.ts"), ...command]);
				break;
			}
		}
	} finally {
		server.kill("SIGTERM");
		await ended;
		rmSync(folder, { recursive: true, force: true });
	}
	if (server.exitCode !== 0) {
		throw new Error(`the server with ${module} ended with ${server.exitCode}`);
	}
}

await runServer(
	"apps/server/testdata/modules/module.ts",
	"packages/storage-etcd/src/index.ts",
	"apps/server/testdata/modules/heap/module.ts",
);
await runServer(
	"examples/catalog/src/module.ts",
	"examples/regions/src/iam/module.ts",
	"examples/regions/src/devices/module.ts",
);
