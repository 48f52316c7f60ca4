#!/usr/bin/env node
import process from "node:process";

const oldestMajor = 24;

// Only this file is loaded by an older Node.js, which may not be able to load the others.
if (Number.parseInt(process.versions.node, 10) < oldestMajor) {
	console.error(
		`create-plinth needs Node.js ${oldestMajor} or later; this is ${process.versions.node}. Install a newer one from https://nodejs.org`,
	);
	process.exitCode = 1;
} else {
	void import("./run.ts")
		.then(({ run }) => run(process.argv.slice(2)))
		.then((code) => {
			process.exitCode = code;
		});
}
