import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { takeTestLength } from "@plinth/test-support/length";
import { defineConfig, type Plugin } from "vitest/config";

/** The package whose tests run. */
const folder = process.cwd();

const seededFastCheck = fileURLToPath(
	new URL("tools/test-support/src/seeded-fast-check.ts", import.meta.url),
);

const compileCache = fileURLToPath(new URL("node_modules/.cache/node-compile", import.meta.url));

const included = {
	test: ["**/*.test.ts"],
	deep: ["**/*.deep.test.ts"],
	soak: ["**/*.{deep,soak,property}.test.ts"],
};

/** Gives tests the seeded fast-check, and that one the real one. */
const seededProperties: Plugin = {
	name: "seeded-properties",
	enforce: "pre",
	resolveId: (source, importer) =>
		source === "fast-check" && importer !== seededFastCheck ? seededFastCheck : undefined,
};

/**
 * The one configuration of all packages. `--mode deep` runs the longer suites (`*.deep.test.ts`) instead of
 * the others; `--mode soak` runs them at length, from a random seed, with those that are only run by hand
 * (`*.soak.test.ts`). See `tools/test-support/src/test-length.ts`.
 */
export default defineConfig(({ mode }) => {
	const tier = mode === "deep" || mode === "soak" ? mode : "test";
	const long = ["**/*.deep.test.ts", "**/*.soak.test.ts"];
	return {
		// Not the package: what vitest has transformed is found again by all runs with the same root.
		root: fileURLToPath(new URL(".", import.meta.url)),
		cacheDir: join(folder, "node_modules/.vite"),
		plugins: [seededProperties],
		test: {
			dir: folder,
			include: included[tier],
			provide: { testLength: takeTestLength(process.env, tier === "soak") },
			exclude: ["**/node_modules/**", "**/dist/**", ...(tier === "test" ? long : [])],
			pool: "forks",
			maxWorkers: 2,
			// Test files share their worker's modules: loading these takes longer than most tests.
			isolate: false,
			// Guards against hangs, not assertions: no test depends on how fast the machine is.
			testTimeout: tier === "soak" ? 24 * 3_600_000 : 600_000,
			hookTimeout: 600_000,
			expect: { poll: { timeout: 300_000, interval: 20 } },
			// Processes that tests start (servers, command lines, workers) load what is compiled already.
			env: { NODE_COMPILE_CACHE: compileCache },
			reporters: ["default", "json"],
			outputFile: { json: join(folder, `.reports/${tier}.json`) },
		},
	};
});
