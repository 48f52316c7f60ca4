import { createClient } from "@connectrpc/connect";
import type { ManagerState } from "@plinth/controller";
import { ControllerService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { ListenerLimits } from "../listener/limits.ts";
import type { RequestHandler } from "../listener/request-handler.ts";
import { checkControllers } from "../module/check-controllers.ts";
import type { Module } from "../module/define-module.ts";
import { ModuleError } from "../module/load-module.ts";
import { startManagers } from "./agent-managers.ts";
import { openOwnCalls } from "./own-calls.ts";
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
	const ownCalls = await openOwnCalls({ tokenFile, handler, limits, runtime, logger });
	const { transport } = ownCalls;
	const managers = startManagers({ modules, transport, runtime, logger });
	const reporting = reportControllers({
		client: createClient(ControllerService, transport),
		controllers: managers,
		...{ runtime, logger },
	});
	return {
		state: () => managers.state(),
		reload: () => ownCalls.reload(),
		async stop() {
			await Promise.all([managers.stop(), reporting.stop()]);
			await ownCalls.close();
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
