import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createProject } from "@plinth/scaffold";
import { temporaryFolder } from "@plinth/test-support";

const run = promisify(execFile);

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** What an installation would put into `node_modules`, by its place in this repository. */
const installed = {
	"@plinth/plinth": "packages/plinth",
	"@bufbuild/protobuf": "packages/plinth/node_modules/@bufbuild/protobuf",
	"@types/node": "node_modules/@types/node",
};

/** The program of a command of `@plinth/plinth`. */
export function command(name: "plinth" | "plinth-server"): string {
	return join(repository, `packages/plinth/src/${name}.ts`);
}

/** A project of `createProject` that uses the packages of this repository, without an installation. */
export class LinkedProject {
	readonly root: string;

	constructor(root: string) {
		this.root = root;
	}

	/** Runs a program of the project, or of this repository, in the project, and resolves to its output. */
	async run(program: string, ...args: readonly string[]): Promise<string> {
		const bins = [this.root, repository].map((folder) => join(folder, "node_modules/.bin"));
		const { stdout } = await run(program, [...args], {
			cwd: this.root,
			env: { ...process.env, PATH: [...bins, process.env.PATH].join(":") },
		}).catch((error: { readonly stdout: string; readonly stderr: string }) => {
			throw new Error(`${program} ${args.join(" ")} failed:\n${error.stdout}${error.stderr}`);
		});
		return stdout;
	}

	read(path: string): Promise<string> {
		return readFile(join(this.root, path), "utf8");
	}

	async write(path: string, text: string): Promise<void> {
		await mkdir(dirname(join(this.root, path)), { recursive: true });
		await writeFile(join(this.root, path), text);
	}
}

/** A new project named `my-platform`. */
export async function linkedProject(): Promise<LinkedProject> {
	const { folder } = await createProject({ folder: join(await temporaryFolder(), "my-platform") });
	for (const [name, path] of Object.entries(installed)) {
		const link = join(folder, "node_modules", name);
		await mkdir(dirname(link), { recursive: true });
		await symlink(join(repository, path), link);
	}
	const bin = join(folder, "node_modules/.bin");
	await mkdir(bin, { recursive: true });
	const programs = {
		buf: `"${repository}/node_modules/.bin/buf"`,
		plinth: `"${process.execPath}" "${command("plinth")}"`,
	};
	for (const [name, program] of Object.entries(programs)) {
		await writeFile(join(bin, name), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
	}
	return new LinkedProject(folder);
}

/** Ends a process that a test has started, unless it has ended. */
export async function stop(server: ChildProcess): Promise<void> {
	if (server.exitCode === null) {
		const exited = once(server, "exit");
		server.kill("SIGTERM");
		await exited;
	}
}
