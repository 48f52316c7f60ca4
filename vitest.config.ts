import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const seededFastCheck = fileURLToPath(new URL("scripts/seeded-fast-check.ts", import.meta.url));

/**
 * The one configuration of all packages. `--mode deep` runs the long suites (`*.deep.test.ts`) instead of
 * the others, and `--mode soak` those that are run by hand (`*.soak.test.ts`).
 */
export default defineConfig(({ mode }) => {
	const tier = mode === "deep" || mode === "soak" ? mode : "test";
	const long = ["**/*.deep.test.ts", "**/*.soak.test.ts"];
	return {
		resolve: { alias: { "fast-check": seededFastCheck } },
		test: {
			include: tier === "test" ? ["**/*.test.ts"] : [`**/*.${tier}.test.ts`],
			exclude: ["**/node_modules/**", "**/dist/**", ...(tier === "test" ? long : [])],
			pool: "forks",
			maxWorkers: 2,
			testTimeout: tier === "test" ? 60_000 : 900_000,
			hookTimeout: 60_000,
			reporters: ["default", ["json", { outputFile: `.reports/${tier}.json` }]],
		},
	};
});
