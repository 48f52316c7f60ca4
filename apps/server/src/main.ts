#!/usr/bin/env node
import { readFileSync } from "node:fs";
import process from "node:process";
import type { Logger } from "@plinth/runtime";
import { StorageError } from "@plinth/storage";
import { ForeignData } from "@plinth/storage-etcd";
import { StorageFileError } from "@plinth/storage-sqlite";
import { copyStorage, isCopyCommand } from "./backup/backup-command.ts";
import { declareEtcdRestored } from "./backup/etcd-restored.ts";
import { type Configuration, parseCommandLine } from "./configuration/configuration.ts";
import { help } from "./configuration/help.ts";
import { FileError } from "./configuration/located-yaml.ts";
import { UsageError } from "./configuration/usage-error.ts";
import { ListenError } from "./listener/listen-error.ts";
import { createLogger } from "./logging/pino-logger.ts";
import { loadModules, ModuleError } from "./module/load-module.ts";
import type { ExportedTraces } from "./operations/export-traces.ts";
import { exitImmediately, watchFaults } from "./process-faults.ts";
import { newToken } from "./security/new-token.ts";
import { createServer, type Server, StartInterrupted } from "./server.ts";
import { defaultStopLimitMs } from "./server-options.ts";
import { startupMessage } from "./startup-message.ts";
import type { StorageOptions } from "./storage/open-storage.ts";

/** The time that a stop has to stop controllers and close the storage after running calls were ended. */
const stopGraceMs = 5_000;

/** The exit codes of the process. */
const exitCodes = { stopped: 0, failed: 1, usage: 2 } as const;

const [, , ...words] = process.argv;
// The help is the same for all commands.
process.exit(await main(words.includes("--help") ? ["--help"] : words));

async function main(args: readonly string[]): Promise<number> {
	// The timers of a stop do not keep the process alive. This one does, until the stop is done.
	const keepAlive = setInterval(() => {}, 2 ** 30);
	try {
		if (args[0] === "new-token" && args.length === 1) {
			const { token, sha256 } = newToken();
			process.stdout.write(`token   ${token}\nsha256  ${sha256}\n`);
			return exitCodes.stopped;
		}
		if (args.includes("--version") || (args[0] === "version" && args.length === 1)) {
			process.stdout.write(`${ownVersion()}\n`);
			return exitCodes.stopped;
		}
		if (args[0] === "etcd-restored") {
			const parsed = parseCommandLine(args.slice(1), process.env);
			if (parsed.kind === "serve") {
				process.stdout.write(await declareEtcdRestored(parsed.configuration));
				return exitCodes.stopped;
			}
		}
		const [first, second] = args;
		if (isCopyCommand(first)) {
			const parsed = parseCommandLine(args.slice(2), process.env);
			if (parsed.kind === "serve") {
				const { configuration } = parsed;
				const logger = createLogger({ level: configuration.logLevel });
				process.stdout.write(await copyStorage(first, second, configuration, logger));
				return exitCodes.stopped;
			}
		}
		const command = parseCommandLine(args, process.env);
		if (command.kind === "help") {
			process.stdout.write(help);
			return exitCodes.stopped;
		}
		return await serve(command.configuration);
	} catch (failure) {
		process.stderr.write(`${explain(failure)}\n`);
		return failure instanceof UsageError || failure instanceof FileError
			? exitCodes.usage
			: exitCodes.failed;
	} finally {
		clearInterval(keepAlive);
	}
}

function ownVersion(): string {
	const manifest: { readonly version: string } = JSON.parse(
		readFileSync(new URL("../package.json", import.meta.url), "utf8"),
	);
	return manifest.version;
}

/** Runs a server until it stops. Returns the exit code. */
async function serve(configuration: Configuration): Promise<number> {
	const { otlpEndpoint, logLevel, stopLimitMs = defaultStopLimitMs } = configuration;
	const logger = createLogger({ level: logLevel });
	let running: Server | undefined;
	const faults = watchFaults({
		logger,
		stop: () => {
			if (running === undefined) {
				exitImmediately(exitCodes.failed);
			}
			// `ended` reports the result.
			running.stop().catch(() => {});
		},
	});
	const modules = await loadModules(configuration.modules);
	const traces = otlpEndpoint && (await tracesTo(otlpEndpoint, logger));
	const server = createServer({
		...configuration,
		storage: storageOptions(configuration),
		modules,
		logger,
		...(traces && { tracerProvider: traces.provider }),
	});
	running = server;
	stopOnSignals(server);
	void server.stopping.then(() => {
		setTimeout(() => {
			logger.error(
				{ limitMs: stopLimitMs + stopGraceMs },
				"the stop did not complete in time: the process exits now",
			);
			exitImmediately(exitCodes.failed);
		}, stopLimitMs + stopGraceMs);
	});
	try {
		await server.start();
		process.stdout.write(startupMessage(server.address, configuration, modules));
		await server.ended;
	} catch (failure) {
		// A signal interrupted the start: that is a regular end.
		if (!(failure instanceof StartInterrupted)) {
			throw failure;
		}
	} finally {
		await traces?.close();
	}
	return faults.count === 0 ? exitCodes.stopped : exitCodes.failed;
}

/** Loads the exporter only where it is used: it would be a tenth of the start. */
async function tracesTo(endpoint: URL, logger: Logger): Promise<ExportedTraces> {
	const { exportTraces } = await import("./operations/export-traces.ts");
	return exportTraces(endpoint, logger);
}

function storageOptions({ storage, etcd, dataDirectory }: Configuration): StorageOptions {
	if (etcd !== undefined) {
		return { kind: "etcd", ...etcd };
	}
	return storage === "memory" ? { kind: "memory" } : { kind: "sqlite", directory: dataDirectory };
}

/** The first signal stops the server gracefully, a second one immediately. */
function stopOnSignals(server: Server): void {
	let stopping = false;
	const onSignal = (signal: NodeJS.Signals) => {
		if (stopping) {
			exitImmediately(exitCodes.failed);
		}
		stopping = true;
		process.stderr.write(`${signal}: stopping; a second signal exits immediately\n`);
		// `ended` reports the result.
		server.stop().catch(() => {});
	};
	process.on("SIGINT", onSignal);
	process.on("SIGTERM", onSignal);
	process.on("SIGHUP", () => {
		// Problems with files are logged. Before the start there are no files to check.
		server.reload().catch(() => {});
	});
}

/** The message for a failure; expected failures explain themselves and have no stack. */
function explain(failure: unknown): string {
	if (!(failure instanceof Error)) {
		return String(failure);
	}
	const expected = [
		...[UsageError, FileError, ModuleError, ListenError],
		...[StorageFileError, ForeignData],
	];
	return failure instanceof StorageError || expected.some((kind) => failure instanceof kind)
		? `plinth-server: ${failure.message}`
		: `plinth-server: ${failure.stack ?? failure.message}`;
}
