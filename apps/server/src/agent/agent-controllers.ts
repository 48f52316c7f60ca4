import { readFile } from "node:fs/promises";
import { createClient } from "@connectrpc/connect";
import type { ManagerState } from "@plinth/controller";
import { ControllerService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import type { Logger, Runtime } from "@plinth/runtime";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { FileError } from "../configuration/located-yaml.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import { openListener } from "../listener/listener.ts";
import type { RequestHandler } from "../listener/request-handler.ts";
import { checkControllers } from "../module/check-controllers.ts";
import type { Module } from "../module/define-module.ts";
import { ModuleError } from "../module/load-module.ts";
import { startManagers } from "./agent-managers.ts";
import { reportControllers } from "./report-controllers.ts";

/** Options of `startAgentControllers`. */
export interface AgentControllersOptions {
	readonly modules: readonly Module[];
	/** A file with the token of the calls of controllers; without it, they are made without a token. */
	readonly tokenFile: string | undefined;
	/** Forwards the calls of controllers. */
	readonly handler: RequestHandler;
	readonly limits: ListenerLimits;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** Controllers that run in an agent. */
export interface AgentControllers {
	/** A report on all of them. */
	state(): ManagerState;
	/** Reads the token file again. @throws FileError if it can't be read: the token before is used then. */
	reload(): Promise<void>;
	/** Stops all controllers, and resolves when they have stopped and released their leases. */
	stop(): Promise<void>;
}

const anyPort = { host: "127.0.0.1", port: 0 } as const;

/** The types that each server has. */
const serverTypes = [Partition, Namespace, Tombstone];

/**
 * Runs the controllers of modules beside an agent: through its forwarding, with the rights of a token of their own, and
 * under leases that the servers grant. Types and services of the modules are those of the servers: an agent serves none.
 *
 * @returns `undefined` if there is no module.
 * @throws ModuleError; FileError if the token file can't be read.
 */
export async function startAgentControllers(
	options: AgentControllersOptions,
): Promise<AgentControllers | undefined> {
	const { modules, tokenFile, handler, limits, runtime, logger } = options;
	if (modules.length === 0) {
		return undefined;
	}
	checkAgentModules(modules);
	let token = await tokenIn(tokenFile);
	// A port of their own: that of the agent may require certificates of its clients.
	const { clock } = runtime;
	const listener = await openListener({ address: anyPort, handler, limits, clock, logger });
	const transport = createPlinthTransport({
		baseUrl: `http://${formatListenAddress(listener.address)}`,
		interceptors: [
			(next) => (request) => {
				if (token !== undefined) {
					request.header.set("authorization", `Bearer ${token}`);
				}
				return next(request);
			},
		],
	});
	const managers = startManagers({ modules, transport, runtime, logger });
	const reporting = reportControllers({
		client: createClient(ControllerService, transport),
		controllers: managers,
		...{ runtime, logger },
	});
	return {
		state: () => managers.state(),
		async reload() {
			token = await tokenIn(tokenFile);
		},
		async stop() {
			await Promise.all([managers.stop(), reporting.stop()]);
			transport.close();
			await listener.close(0);
		},
	};
}

/** @throws ModuleError */
function checkAgentModules(modules: readonly Module[]): void {
	const types = modules.flatMap((module) => module.types);
	checkControllers(modules, new TypeRegistry([...serverTypes, ...types]));
	const names = new Set<string>();
	for (const { name, controllers } of modules) {
		if (controllers.length === 0) {
			throw new ModuleError(
				`module ${name} has no controllers: an agent runs nothing else of a module; load it at the servers`,
			);
		}
		if (!/^[A-Za-z0-9._-]{1,100}$/.test(name)) {
			throw new ModuleError(
				`module ${JSON.stringify(name)}: in an agent, the name of a module is that of a lease: use up to 100 letters, digits, - . _`,
			);
		}
		if (names.has(name)) {
			throw new ModuleError(`two modules have the name ${name}: rename one of them`);
		}
		names.add(name);
	}
}

async function tokenIn(file: string | undefined): Promise<string | undefined> {
	if (file === undefined) {
		return undefined;
	}
	let text: string;
	try {
		text = await readFile(file, "utf8");
	} catch (cause) {
		throw new FileError(`${file} can't be read`, { cause });
	}
	const token = text.trim();
	if (token === "" || /\s/.test(token)) {
		throw new FileError(`${file} must contain one token, without spaces or line breaks`);
	}
	return token;
}
