import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { plinthMain } from "./process.fixture.ts";

const run = promisify(execFile);

/** Prints the version, with an environment of these variables alone. */
async function printVersion(env: Readonly<Record<string, string>>): Promise<string> {
	const { stdout } = await run(process.execPath, [plinthMain, "version"], { env });
	return stdout;
}

describe("plinth", () => {
	it("keeps its compiled code in the user's cache folder", async () => {
		const home = await temporaryFolder();
		await printVersion({ HOME: home });
		const folder = join(home, ".cache/plinth/compile-cache");
		const [ofVersion = ""] = await readdir(folder);
		expect(await readdir(join(folder, ofVersion))).not.toEqual([]);
	});

	it("runs where nothing can be kept", async () => {
		const file = join(await temporaryFolder(), "no-folder");
		await writeFile(file, "");
		expect(await printVersion({ HOME: file })).toMatch(/^\d+\.\d+\.\d+/);
	});

	it("keeps nothing if told so", async () => {
		const home = await temporaryFolder();
		await printVersion({ HOME: home, NODE_DISABLE_COMPILE_CACHE: "1" });
		expect(existsSync(join(home, ".cache/plinth/compile-cache"))).toBe(false);
	});
});
