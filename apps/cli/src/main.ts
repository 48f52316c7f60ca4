#!/usr/bin/env node
import { keepCompiledCode } from "@plinth/runtime/compile-cache";
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth")) {
	keepCompiledCode();
	void Promise.all([import("./run-process.ts"), import("./installed-commands.ts")]).then(
		async ([{ runProcess }, { installedCommands }]) => runProcess(await installedCommands()),
	);
}
