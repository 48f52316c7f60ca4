import { defineConfig } from "vitest/config";

/**
 * The one configuration of all packages. `--mode deep` runs the long suites
 * (`*.deep.test.ts`) instead of the others.
 */
export default defineConfig(({ mode }) => {
	const deep = mode === "deep";
	return {
		test: {
			include: deep ? ["**/*.deep.test.ts"] : ["**/*.test.ts"],
			exclude: ["**/node_modules/**", "**/dist/**", ...(deep ? [] : ["**/*.deep.test.ts"])],
			pool: "forks",
			maxWorkers: 2,
			testTimeout: deep ? 900_000 : 60_000,
			hookTimeout: 60_000,
			reporters: ["default", ["json", { outputFile: `.reports/${deep ? "deep" : "test"}.json` }]],
		},
	};
});
