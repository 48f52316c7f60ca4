import process from "node:process";
import { defaultControllerLimits } from "@plinth/controller";
import { systemClock } from "@plinth/runtime";
import { exitCodes } from "../command/exit-codes.ts";
import { printStartup } from "../command/print-startup.ts";
import { exitImmediately, watchFaults } from "../command/process-faults.ts";
import { createLogger } from "../logging/pino-logger.ts";
import type { Module } from "../module/define-module.ts";
import { loadModules } from "../module/load-module.ts";
import { defaultStopLimitMs } from "../server-options.ts";
import { startAgent } from "./agent.ts";
import type { AgentConfiguration } from "./agent-configuration.ts";

/** The time that a stop has after running calls and controllers were ended, in milliseconds. */
const stopGraceMs = 5_000;

const { stopFinishMs, stopAbortMs } = defaultControllerLimits;
/** How long controllers may take to stop, in milliseconds. */
const controllersStopMs = stopFinishMs + stopAbortMs;

/** Runs an agent until it stops by a signal of this process. Resolves to the exit code. */
export async function runAgent(configuration: AgentConfiguration): Promise<number> {
	const { logLevel = "info", stopLimitMs = defaultStopLimitMs } = configuration;
	const logger = createLogger({ level: logLevel });
	const stopping = Promise.withResolvers<void>();
	const faults = watchFaults({ logger, stop: () => stopping.resolve() });
	const modules = await loadModules(configuration.modules ?? [], {
		...{ logger, clock: systemClock },
	});
	const agent = await startAgent(configuration, { logger, modules });
	let signals = 0;
	const onSignal = (signal: NodeJS.Signals) => {
		signals += 1;
		if (signals > 1) {
			exitImmediately(exitCodes.failed);
		}
		process.stderr.write(`${signal}: stopping; a second signal exits immediately\n`);
		stopping.resolve();
	};
	process.on("SIGINT", onSignal);
	process.on("SIGTERM", onSignal);
	process.on("SIGHUP", () => {
		// Problems with files are logged.
		agent.reload().catch(() => {});
	});
	printStartup(
		`Plinth agent listens on ${agent.address}
  servers  ${serversText(configuration)}${controllersLine(modules)}

Try next, in another terminal:
  curl -s ${agent.address}/readyz
`,
		logger,
	);
	await stopping.promise;
	// Controllers stop while the calls of clients finish.
	const limitMs = modules.length === 0 ? stopLimitMs : Math.max(stopLimitMs, controllersStopMs);
	setTimeout(() => {
		logger.error({}, "the stop did not complete in time: the process exits now");
		exitImmediately(exitCodes.failed);
	}, limitMs + stopGraceMs);
	await agent.stop();
	return faults.count === 0 ? exitCodes.stopped : exitCodes.failed;
}

function serversText({ servers, discover }: AgentConfiguration): string {
	return [...servers, ...(discover === undefined ? [] : [discover.text])].join(", ");
}

function controllersLine(modules: readonly Module[]): string {
	const names = modules.flatMap(({ controllers }) => controllers.map(({ name }) => name));
	return names.length === 0 ? "" : `\n  controllers  ${names.join(", ")}`;
}
