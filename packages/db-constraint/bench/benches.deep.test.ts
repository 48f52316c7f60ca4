import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const packageFolder = join(import.meta.dirname, "..");

// The benches open deployments on a network of their own, and wait forever for one that never serves. `plinth-bench`
// would leave such a bench running when the test times out.
describe("the bench", () => {
	it.for(globSync("*.bench.ts", { cwd: import.meta.dirname }))(
		"%s ends with figures",
		async (file, { signal }) => {
			const { stdout, stderr } = await promisify(execFile)(
				process.execPath,
				["--expose-gc", join("bench", file), "--quick"],
				{ signal, cwd: packageFolder, env: { ...process.env, NODE_ENV: "production" } },
			);
			expect(stderr).toBe("");
			expect(stdout).toMatch(/\d/);
		},
	);
});
