#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth")) {
	void Promise.all([import("./run-process.ts"), import("./installed-commands.ts")]).then(
		async ([{ runProcess }, { installedCommands }]) => runProcess(await installedCommands()),
	);
}
