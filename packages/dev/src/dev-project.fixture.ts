import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "@plinth/test-support";
import { onTestFinished } from "vitest";

const ownFolder = fileURLToPath(new URL("..", import.meta.url));
/** The program of the tests: `dev` and `generate code`. */
export const devProgram = fileURLToPath(new URL("./main.fixture.ts", import.meta.url));

/** What the project of the tests has installed, from this package or from the workspace. */
const installed = [
	...["@plinth/controller", "@plinth/proto", "@plinth/resource", "@plinth/server"],
	...["@bufbuild/protobuf"],
];

/** Not files of the package: checks of the workspace would take them for its own. */
const configuration = {
	"buf.yaml": `version: v2
modules:
  - path: proto
  - path: node_modules/@plinth/proto/proto
`,
	"buf.gen.yaml": `version: v2
clean: true
inputs:
  - directory: proto
plugins:
  - local: protoc-gen-es
    out: src/gen
    opt:
      - target=ts
      - import_extension=ts
      - erasable_syntax=true
      - rewrite_imports=./plinth/**/*.js:@plinth/proto/gen
`,
};

/** A guard against hangs, below that of the tests: it tells what was printed. */
const longestSilenceMs = 300_000;

const programs = ["buf", "protoc-gen-es", "tsc"];

/** Creates a project in a temporary folder, with links to the packages of this workspace. */
export async function createDevProject(): Promise<DevProject> {
	const folder = await temporaryFolder();
	await cp(join(ownFolder, "testdata/project"), folder, { recursive: true });
	for (const [file, text] of Object.entries(configuration)) {
		await writeFile(join(folder, file), text);
	}
	const workspace = join(ownFolder, "../..");
	const links = [
		...installed.map((name) => [join(ownFolder, "node_modules", name), name] as const),
		...programs.map((name) => {
			const path = join(".bin", name);
			return [join(workspace, "node_modules", path), path] as const;
		}),
		[join(workspace, "node_modules/@types/node"), "@types/node"] as const,
	];
	for (const [target, name] of links) {
		const link = join(folder, "node_modules", name);
		await mkdir(dirname(link), { recursive: true });
		await symlink(target, link);
	}
	return new DevProject(folder);
}

/** A project of the tests, and `plinth dev` in its folder. */
export class DevProject {
	readonly folder: string;

	constructor(folder: string) {
		this.folder = folder;
	}

	/** Replaces text in a file, in the way of editors that write another file and rename it. */
	async edit(file: string, from: string, to: string): Promise<void> {
		const path = join(this.folder, file);
		const before = await readFile(path, "utf8");
		if (!before.includes(from)) {
			throw new Error(`${file} does not contain ${from}`);
		}
		await writeFile(`${path}.tmp`, before.replace(from, to));
		await rename(`${path}.tmp`, path);
	}

	/** Runs `plinth dev` until the test is over. */
	start(...flags: readonly string[]): DevProcess {
		return new DevProcess(this.folder, flags);
	}
}

/** `plinth dev` in its own process. */
export class DevProcess {
	readonly #child: ChildProcess;
	readonly ended: Promise<number | null>;
	#output = "";
	#hasEnded = false;
	#printed = Promise.withResolvers<void>();
	/** How much of the output `prints` has returned. */
	read = 0;

	constructor(folder: string, flags: readonly string[]) {
		this.#child = spawn(
			process.execPath,
			[devProgram, "dev", "--listen", "127.0.0.1:0", ...flags],
			{
				cwd: folder,
				stdio: ["ignore", "pipe", "pipe"],
			},
		);
		for (const stream of [this.#child.stdout, this.#child.stderr]) {
			stream?.setEncoding("utf8").on("data", (text: string) => {
				this.#output += text;
				this.#wake();
			});
		}
		this.ended = once(this.#child, "close").then(([code]) => {
			this.#hasEnded = true;
			this.#wake();
			return code;
		});
		onTestFinished(() => void this.#child.kill("SIGKILL"));
	}

	/** Everything that it has printed. */
	get output(): string {
		return this.#output;
	}

	#wake(): void {
		this.#printed.resolve();
		this.#printed = Promise.withResolvers();
	}

	kill(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	/**
	 * Resolves to what it prints from now on until each of the patterns was printed, in any order: the server and the
	 * type check run beside each other. Later calls continue there.
	 */
	async prints(...patterns: readonly RegExp[]): Promise<string> {
		const missing = (reason: string) =>
			new Error(`${reason} ${patterns.join(" and ")}. Printed last:\n${this.#lastLines()}`);
		const timeout = Promise.withResolvers<never>();
		const timer = setTimeout(() => timeout.reject(missing("did not print")), longestSilenceMs);
		try {
			for (;;) {
				const text = this.#output.slice(this.read);
				const ends = patterns.map((pattern) => endOfMatch(pattern, text));
				if (ends.every((end) => end !== undefined)) {
					const end = Math.max(...ends);
					this.read += end;
					return text.slice(0, end);
				}
				if (this.#hasEnded) {
					throw missing("ended before it printed");
				}
				await Promise.race([this.#printed.promise, timeout.promise]);
			}
		} finally {
			clearTimeout(timer);
		}
	}

	/** As many as the summary of the tests shows. */
	#lastLines(): string {
		return this.#output.trimEnd().split("\n").slice(-10).join("\n");
	}

	/** The process ids of the servers that it has started and that run. */
	async servers(): Promise<readonly number[]> {
		const { stdout } = await promisify(execFile)("pgrep", [
			"-P",
			`${this.#child.pid}`,
			"-f",
			"child/main",
		]);
		return stdout.trim().split("\n").map(Number);
	}

	/** Resolves to the address that it serves. */
	async address(): Promise<string> {
		const text = await this.prints(/serves http:\/\/\S+\d/);
		return text.slice(text.indexOf("http://"));
	}
}

function endOfMatch(pattern: RegExp, text: string): number | undefined {
	const match = pattern.exec(text);
	return match === null ? undefined : match.index + match[0].length;
}
