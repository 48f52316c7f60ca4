import process from "node:process";
import { type Logger, systemClock } from "@plinth/runtime";
import type { Configuration } from "../configuration/configuration.ts";
import { createLogger } from "../logging/pino-logger.ts";
import { loadModules } from "../module/load-module.ts";
import type { ExportedTraces } from "../operations/export-traces.ts";
import { createServer, type Server, StartInterrupted } from "../server.ts";
import { defaultStopLimitMs, type ServerOptions } from "../server-options.ts";
import type { StorageOptions } from "../storage/open-storage.ts";
import { exitCodes } from "./exit-codes.ts";
import { printStartup } from "./print-startup.ts";
import { exitImmediately, watchFaults } from "./process-faults.ts";
import { startupMessage } from "./startup-message.ts";

/** The time that a stop has to stop controllers and close the storage after running calls were ended. */
const stopGraceMs = 5_000;

/** What a program that runs a server as a part of itself does differently. */
export interface ServeHooks extends Pick<ServerOptions, "beforeStorage"> {
	/** Called once the server is ready, in place of the startup message. */
	readonly onReady?: (address: string) => void;
	/** Aborts to stop the server, as a signal does. */
	readonly stop?: AbortSignal;
}

/** Runs a server until it stops, also by the signals of this process. Resolves to the exit code. */
export async function serve(
	configuration: Configuration,
	{ onReady, stop, ...hooks }: ServeHooks = {},
): Promise<number> {
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
	const modules = await loadModules(configuration.modules, { logger, clock: systemClock });
	const traces = otlpEndpoint && (await tracesTo(otlpEndpoint, logger));
	const server = createServer({
		...configuration,
		...hooks,
		storage: storageOptions(configuration),
		modules,
		logger,
		...(traces && { tracerProvider: traces.provider }),
	});
	running = server;
	stopOnSignals(server);
	stop?.addEventListener("abort", () => void server.stop().catch(() => {}));
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
		if (onReady === undefined) {
			printStartup(startupMessage(server.address, configuration, modules), logger);
		} else {
			onReady(server.address);
		}
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
	const { exportTraces } = await import("../operations/export-traces.ts");
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
