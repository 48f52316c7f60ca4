import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { textOf, unit } from "./artifacts.fixture.ts";

/** Runs systemd-analyze on the unit, with an installation in a folder where that of the unit would be. */
async function analyze(...args: readonly string[]) {
	const folder = await temporaryFolder();
	const program = join(folder, "opt/plinth/node_modules/.bin/plinth-server");
	mkdirSync(dirname(program), { recursive: true });
	writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
	const file = join(folder, "plinth-server.service");
	writeFileSync(file, textOf(unit).replaceAll("/opt/plinth", join(folder, "opt/plinth")));
	const { status, stdout, stderr } = spawnSync("systemd-analyze", [...args, file], {
		encoding: "utf8",
	});
	return { status, output: stdout + stderr };
}

describeWith("systemd-analyze")("the unit of systemd", () => {
	it("is valid", async () => {
		const { status, output } = await analyze("verify", "--man=no");
		expect(output.split("\n").filter((line) => line.includes("plinth-server"))).toEqual([]);
		expect(status).toBe(0);
	});

	it("is well confined", async () => {
		const { output } = await analyze("security", "--offline=true");
		const [, exposure = ""] = /Overall exposure level for .*: ([0-9.]+)/.exec(output) ?? [];
		expect(Number(exposure)).toBeGreaterThan(0);
		expect(Number(exposure)).toBeLessThan(2.5);
	});
});
