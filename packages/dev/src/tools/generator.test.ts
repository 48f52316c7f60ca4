import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@plinth/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDevProject, type DevProject, devProgram } from "../dev-project.fixture.ts";
import { createGenerator, type Generator } from "./generator.ts";

const never = new AbortController().signal;
const generated = "src/gen/zoo/v1/animal_pb.ts";

function generatorOf({ folder }: DevProject): Generator {
	const program = join(folder, "node_modules/.bin/buf");
	return createGenerator({ program, folder, clock: systemClock });
}

/** Replaces buf by a script, which runs the real one as `"$real" "$@"`. */
async function replaceBuf({ folder }: DevProject, script: string): Promise<void> {
	const program = join(folder, "node_modules/.bin/buf");
	await rename(program, `${program}-real`);
	const text = `#!/bin/sh\nreal='${program}-real'\n${script}\n`;
	await writeFile(program, text, { mode: 0o755 });
}

/** Starts `plinth generate code` in a project whose buf waits; resolves once it does. */
async function startWaiting(project: DevProject) {
	const { folder } = project;
	await replaceBuf(
		project,
		'touch waits; until [ -e continue ]; do sleep 0.1; done; exec "$real" "$@"',
	);
	const child = spawn(process.execPath, [devProgram, "generate", "code"], {
		cwd: folder,
		stdio: "ignore",
	});
	const ended = once(child, "close");
	const proceed = () => writeFile(join(folder, "continue"), "");
	onTestFinished(proceed);
	await expect.poll(() => existsSync(join(folder, "waits"))).toBe(true);
	return { child, ended, proceed };
}

describe("generators of one project", () => {
	it("run one at a time, from reading protos to replacing files", async () => {
		const project = await createDevProject();
		await replaceBuf(project, 'echo begin >> log; "$real" "$@"; echo end >> log');
		const generators = Array.from({ length: 4 }, () => generatorOf(project));
		const results = await Promise.all(generators.map((each) => each.generate(never)));
		expect(results).toEqual([[], [], [], []]);
		expect(await readFile(join(project.folder, "log"), "utf8")).toBe("begin\nend\n".repeat(4));
		expect(existsSync(join(project.folder, generated))).toBe(true);
		expect(await readdir(join(project.folder, ".plinth"))).toEqual(["generate.lock"]);
	});

	it("wait for another process, unless they are interrupted", async () => {
		const project = await createDevProject();
		const { ended, proceed } = await startWaiting(project);
		const interrupt = new AbortController();
		const waiting = generatorOf(project).generate(interrupt.signal);
		interrupt.abort();
		expect(await waiting).toEqual([]);
		expect(existsSync(join(project.folder, generated))).toBe(false);
		await proceed();
		expect((await ended)[0]).toBe(0);
		expect(existsSync(join(project.folder, generated))).toBe(true);
	});

	it("continue when a process that generates is killed", async () => {
		const project = await createDevProject();
		const { child, ended, proceed } = await startWaiting(project);
		child.kill("SIGKILL");
		await ended;
		await proceed();
		expect(await generatorOf(project).generate(never)).toEqual([]);
		expect(existsSync(join(project.folder, generated))).toBe(true);
	});
});
