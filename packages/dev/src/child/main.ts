/**
 * The process that runs the server: `plinth-server`, but it waits for its supervisor before it imports the module, and
 * again before the start, and listens on a port of its own. Its arguments are those of `plinth-server`.
 */
import { flushCompileCache } from "node:module";
import { isIP } from "node:net";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import type { Configuration } from "@plinth/server/command";
import { errorReport } from "./error-report.ts";
import { observeImports } from "./imported-files.ts";
import { type ChildMessage, type ImportedFile, marked } from "./messages.ts";
import { withSyntaxPlace } from "./syntax-place.ts";

// As in plinth-server.
setFlagsFromString("--no-allocation-site-pretenuring");
setInterval(() => {}, 2 ** 30);

const stop = new AbortController();
const load = Promise.withResolvers<void>();
const begin = Promise.withResolvers<void>();
let wasToldToServe = false;

process.on("message", (message) => {
	if (message === "load") {
		load.resolve();
	} else if (message === "serve") {
		wasToldToServe = true;
		begin.resolve();
	} else if (message === "stop") {
		stop.abort();
	}
});
process.on("disconnect", () => {
	// The supervisor is gone. Before the start there is nothing to stop.
	if (wasToldToServe) {
		stop.abort();
	} else {
		process.exit(1);
	}
});

let imported: ImportedFile[] = [];
let lastImported: string | undefined;

/** Resolves when the message is written. Rejects never: without a supervisor, nobody needs it. */
function send(message: ChildMessage): Promise<void> {
	return new Promise((resolve) => {
		if (process.send === undefined || !process.connected) {
			resolve();
			return;
		}
		process.send(marked(message), undefined, {}, () => resolve());
	});
}

/** Sends what was imported since the last time. */
async function sendImported(): Promise<void> {
	if (imported.length > 0) {
		const files = imported;
		imported = [];
		await send({ kind: "imported", files });
	}
}

observeImports((file) => {
	lastImported = file.path;
	if (imported.push(file) === 1) {
		setImmediate(() => void sendImported());
	}
});

async function serveProject(configuration: Configuration): Promise<number> {
	try {
		return await serve(
			{
				...configuration,
				listen: { host: "127.0.0.1", port: 0 },
				// Clients reconnect to the next child at once: there is no need to linger for them.
				limits: { lingerMs: 20, ...configuration.limits },
				...allowedHosts(configuration),
			},
			{
				stop: stop.signal,
				beforeStorage: async () => {
					await sendImported();
					await send({ kind: "loaded" });
					await begin.promise;
				},
				onReady: (address) => void send({ kind: "ready", port: Number(new URL(address).port) }),
			},
		);
	} catch (failure) {
		await sendImported();
		await send({ kind: "failed", error: withSyntaxPlace(errorReport(failure), lastImported) });
		return 1;
	}
}

/** The hosts of a server that listens on the address of the supervisor. Without tokens, its name is one of them. */
function allowedHosts({ access, listen, allowedHosts }: Configuration): Partial<Configuration> {
	return access !== undefined || isIP(listen.host) !== 0
		? {}
		: { allowedHosts: [...(allowedHosts ?? []), listen.host] };
}

const { preloadServer, runCommand, serve } = await import("@plinth/server/command");
await preloadServer();
flushCompileCache();
await load.promise;
process.exit(
	await runCommand(process.argv.slice(2), {
		environment: process.env,
		stdout: process.stdout,
		stderr: process.stderr,
		serve: serveProject,
	}),
);
