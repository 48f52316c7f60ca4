#!/usr/bin/env node
import process from "node:process";
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("create-plinth")) {
	void import("./run.ts")
		.then(({ run }) => run(process.argv.slice(2)))
		.then((code) => {
			process.exitCode = code;
		});
}
