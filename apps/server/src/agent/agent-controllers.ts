import { createClient } from "@connectrpc/connect";
import type { ManagerState } from "@plinth/controller";
import { ControllerService } from "@plinth/proto";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { checkControllers } from "../module/check-controllers.ts";
import type { Module } from "../module/define-module.ts";
import { ModuleError } from "../module/load-module.ts";
import { startManagers } from "./agent-managers.ts";
import { type OwnCallsOptions, openOwnCalls } from "./own-calls.ts";
import { reportControllers } from "./report-controllers.ts";

/** Options of `startAgentControllers`. */
export interface AgentControllersOptions extends Omit<OwnCallsOptions, "runtime"> {
	readonly modules: readonly Module[];
	readonly runtime: Runtime;
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
	const { modules, runtime, logger } = options;
	if (modules.length === 0) {
		return undefined;
	}
	checkAgentModules(modules);
	const ownCalls = await openOwnCalls(options);
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
