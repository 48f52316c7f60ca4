import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { command, type LinkedProject, linkedProject, stop } from "./linked-project.fixture.ts";

/** How long a check gets to overtake `plinth dev`, which it must not. */
const overtakingMs = 5_000;

it("npm run check waits for the code that plinth dev generates from older protos, and succeeds", async () => {
	const project = await linkedProject();
	const exists = (file: string) => existsSync(join(project.root, file));
	// Holds the first run of buf that begins after a file `hold` is there, once it has read the protos.
	const buf = "node_modules/.bin/buf";
	await project.write(`${buf}-real`, await project.read(buf));
	await project.write(
		buf,
		`#!/bin/sh
sh "$(dirname "$0")/buf-real" "$@" || exit $?
if [ -e hold ] && mkdir held 2>/dev/null; then until [ -e continue ]; do sleep 0.1; done; fi
`,
	);
	onTestFinished(() => project.write("continue", ""));
	const dev = startDev(project);
	await expect.poll(dev.output).toContain("] ready in");
	await project.write("hold", "");
	await addMessage(project, "First");
	await expect.poll(() => exists("held")).toBe(true);
	await addMessage(project, "Second");
	const checked = runScript(project, "check");
	checked.catch(() => {});
	for (let waitedMs = 0; waitedMs < overtakingMs && !exists(generated("Second")); waitedMs += 50) {
		await sleep(50);
	}
	await project.write("continue", "");
	await checked;
	expect(exists(generated("First")) && exists(generated("Second"))).toBe(true);
	expect(dev.output()).not.toContain("can't be written");
});

it.each(["generate", "check"])(
	"npm run %s replaces a generated file at once, so that nobody reads a part of it",
	async (script) => {
		const project = await linkedProject();
		await addMessage(project, "First");
		await runScript(project, "generate");
		const file = join(project.root, generated("First"));
		const before = await stat(file, { bigint: true });
		await addMessage(project, "First", "// Has changed.");
		await runScript(project, script);
		expect(await project.read(generated("First"))).toContain("Has changed.");
		expect((await stat(file, { bigint: true })).ino).not.toBe(before.ino);
	},
);

async function runScript(project: LinkedProject, name: string): Promise<void> {
	const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
		await project.read("package.json"),
	);
	await project.run("sh", "-c", scripts[name] ?? `no script ${name}`);
}

function generated(message: string): string {
	return `src/gen/my_platform/v1/${message.toLowerCase()}_pb.ts`;
}

/** Writes a proto with a message, and code that uses it. */
async function addMessage(project: LinkedProject, name: string, comment = ""): Promise<void> {
	const file = name.toLowerCase();
	await project.write(
		`src/${file}.ts`,
		`import { ${name}Schema } from "./gen/my_platform/v1/${file}_pb.ts";\n\nexport const schema = ${name}Schema;\n`,
	);
	await project.write(
		`proto/my_platform/v1/${file}.proto`,
		`syntax = "proto3";\n\npackage my_platform.v1;\n\n${comment}\nmessage ${name} {\n  string text = 1;\n}\n`,
	);
}

/** Runs `plinth dev` in a project until the test is over. */
function startDev({ root }: LinkedProject) {
	const child = spawn(process.execPath, [command("plinth"), "dev", "--listen", "127.0.0.1:0"], {
		cwd: root,
		stdio: ["ignore", "pipe", "pipe"],
	});
	onTestFinished(() => stop(child));
	let output = "";
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding("utf8").on("data", (text: string) => {
			output += text;
		});
	}
	return { output: () => output };
}
