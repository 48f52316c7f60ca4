import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it, vi } from "vitest";
import { createLogger } from "../logging/pino-logger.ts";
import { ConsoleBuildProcess } from "./console-build.ts";

/** A build by a program, and what it logs. */
async function startBuild(program: string) {
	const lines: { readonly level: number; readonly msg: string }[] = [];
	const build = new ConsoleBuildProcess(
		createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
	);
	const file = join(await temporaryFolder(), "build.js");
	await writeFile(file, program);
	build.start(file);
	const end = () => vi.waitFor(() => expect(build.state).not.toBe("running"), { timeout: 300_000 });
	return { build, lines, end };
}

it("logs no warning about a build that is stopped", async () => {
	const { build, lines, end } = await startBuild("setInterval(() => {}, 1000)");
	build.stop();
	await end();
	expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
		[30, "building the console"],
		[30, "the build of the console was stopped"],
	]);
});

it("logs no warning about a build that Ctrl-C interrupts before it is stopped", async () => {
	const { lines, end } = await startBuild("process.kill(process.pid, 'SIGINT')");
	await end();
	expect(lines.at(-1)).toMatchObject({ level: 30, msg: "the build of the console was stopped" });
});

it("warns of a build that fails", async () => {
	const { build, lines, end } = await startBuild("process.exit(3)");
	await end();
	expect(build.state).toBe("failed");
	expect(lines.at(-1)).toMatchObject({ level: 40, msg: "the console could not be built" });
	expect(build.output).toContain("it ended with code 3");
});
