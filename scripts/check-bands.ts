/**
 * Checks who imports whom: a package may depend on packages of lower bands only
 * (docs/design/architecture.md). Development dependencies are free, but for cycles that turbo finds itself.
 */
import { globSync, readFileSync } from "node:fs";

/** From the bottom up. */
const bands: readonly (readonly string[])[] = [
	["runtime", "protoc-gen-clone", "proto"],
	["resource", "in-process"],
	["cache", "storage"],
	["resource-service", "controller", "storage-sqlite", "storage-etcd"],
	["system-controllers", "db-constraint", "testing"],
	["server", "cli"],
	["example-*"],
];

function bandOf(name: string): number {
	return bands.findIndex((band) =>
		band.some(
			(entry) =>
				`@plinth/${entry}` === name ||
				(entry.endsWith("*") && name.startsWith(`@plinth/${entry.slice(0, -1)}`)),
		),
	);
}

const problems: string[] = [];
for (const file of globSync("{packages,apps,examples}/*/package.json")) {
	const manifest: { name: string; dependencies?: Record<string, string> } = JSON.parse(
		readFileSync(file, "utf8"),
	);
	const band = bandOf(manifest.name);
	if (band < 0) {
		problems.push(`${manifest.name} is in no band: name it in scripts/check-bands.ts`);
	}
	for (const dependency of Object.keys(manifest.dependencies ?? {})) {
		if (dependency.startsWith("@plinth/") && bandOf(dependency) >= band) {
			problems.push(`${manifest.name} must not depend on ${dependency}: it is in no lower band`);
		}
	}
}
if (problems.length > 0) {
	console.error(problems.join("\n"));
	process.exit(1);
}
