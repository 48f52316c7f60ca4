import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Copy, DockerfileParser, From } from "dockerfile-ast";

/** The user of the base image who is not root. */
const node = { name: "node", id: 1_000 };

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface BuildOptions {
	/** The folder whose files `COPY` takes. */
	readonly context: string;
	/** An empty folder for everything that is built. */
	readonly folder: string;
	/** Values of `ARG`. */
	readonly args?: Readonly<Record<string, string>>;
	/** Variables of the build that do not become part of the image, such as those of npm. */
	readonly environment?: Readonly<Record<string, string>>;
}

/** A stage of an image: its files are those of this machine and what its steps write over them. */
class Stage {
	/** What the steps have written. */
	readonly files: string;
	readonly #folder: string;
	readonly environment: Record<string, string> = { PATH: path };
	workingDirectory = "/";
	user: string | undefined;

	constructor(folder: string) {
		this.#folder = folder;
		this.files = join(folder, "files");
		for (const each of ["files/usr/local/bin", "files/etc", "work", "root"]) {
			mkdirSync(join(folder, each), { recursive: true });
		}
		// What the base image has: Node.js, and a user for it.
		symlinkSync(process.execPath, join(this.files, "usr/local/bin/node"));
		const passwd = readFileSync("/etc/passwd", "utf8").replace(/^node:.*\n/m, "");
		const group = readFileSync("/etc/group", "utf8").replace(/^node:.*\n/m, "");
		const home = join(this.files, "home/node");
		mkdirSync(home, { recursive: true });
		writeFileSync(
			join(this.files, "etc/passwd"),
			`${passwd}node:x:${node.id}:${node.id}::/home/node:/bin/sh\n`,
		);
		writeFileSync(join(this.files, "etc/group"), `${group}node:x:${node.id}:\n`);
	}

	/** Starts a program with the files of the stage as its root. */
	start(command: readonly string[], options: RunOptions = {}): ChildProcess {
		const { volume, environment = {} } = options;
		const root = join(this.#folder, "root");
		const work = join(this.#folder, "work");
		const script = [
			`mount -t overlay overlay -o "lowerdir=/,upperdir=${this.files},workdir=${work}" "${root}"`,
			`mount --rbind /proc "${root}/proc"`,
			`mount --rbind /dev "${root}/dev"`,
			...(volume === undefined
				? []
				: [`mount --bind "${volume}" "${root}/data"`, `mount -o remount,ro "${root}"`]),
			`exec chroot ${this.user === undefined ? "" : `--userspec=${node.id}:${node.id}`} "${root}" "$@"`,
		].join(" && ");
		const variables = Object.entries({ ...environment, ...this.environment }).map(
			([name, value]) => `${name}=${value}`,
		);
		const inStage = ["/usr/bin/env", "-i", ...variables];
		const inFolder = ["/bin/sh", "-c", `cd "${this.workingDirectory}" && exec "$@"`, "sh"];
		return spawn(
			"unshare",
			["--mount", "sh", "-c", script, "sh", ...inStage, ...inFolder, ...command],
			{ stdio: ["ignore", "pipe", "pipe"] },
		);
	}

	/** Runs a program to its end. */
	async run(command: readonly string[], options: RunOptions = {}): Promise<string> {
		const child = this.start(command, options);
		let output = "";
		child.stdout?.on("data", (data: Buffer) => (output += data));
		child.stderr?.on("data", (data: Buffer) => (output += data));
		const [code]: unknown[] = await once(child, "close");
		if (code !== 0) {
			throw new Error(`${command.join(" ")} ended with ${code}:\n${output}`);
		}
		return output;
	}
}

interface RunOptions {
	/** A folder of this machine in place of `/data`: all else is read-only then. */
	readonly volume?: string;
	readonly environment?: Readonly<Record<string, string>>;
}

/** An image whose steps were run, without a container engine. */
export interface Image {
	/** Starts its command. */
	start(options: RunOptions): ChildProcess;
	/** Runs its health check, which fails with the output. */
	checkHealth(options: RunOptions): Promise<string>;
	/** What the steps of its last stage have written. */
	readonly files: string;
	readonly user: string | undefined;
}

/**
 * Runs the steps of a Dockerfile, each in a mount namespace of its own whose root is the stage: an overlay over the files
 * of this machine, whose Node.js stands in for that of the base image. It needs root, and `unshare`.
 */
export async function buildImage(dockerfile: string, options: BuildOptions): Promise<Image> {
	const { context, folder, args = {}, environment = {} } = options;
	const stages = new Map<string, Stage>();
	let stage = new Stage(join(folder, "none"));
	let command: readonly string[] = [];
	let health: readonly string[] = [];
	for (const instruction of DockerfileParser.parse(
		readFileSync(dockerfile, "utf8"),
	).getInstructions()) {
		const text = (instruction.getArgumentsContent() ?? "").replace(/\\\r?\n\s*/g, "");
		if (instruction instanceof From) {
			stage = new Stage(join(folder, `stage-${stages.size}`));
			stages.set(instruction.getBuildStage() ?? "", stage);
		} else if (instruction instanceof Copy) {
			copy(instruction, stage, stages, context);
		} else {
			switch (instruction.getKeyword()) {
				case "ARG": {
					const [name = "", value = ""] = text.split("=");
					stage.environment[name] = args[name] ?? value;
					break;
				}
				case "ENV":
					for (const [, name = "", value = ""] of text.matchAll(/(\w+)=(\S+)/g)) {
						stage.environment[name] = value;
					}
					break;
				case "WORKDIR":
					stage.workingDirectory = text;
					mkdirSync(join(stage.files, text), { recursive: true });
					break;
				case "USER":
					stage.user = text;
					break;
				case "RUN":
					await stage.run(["/bin/sh", "-c", text], { environment });
					break;
				case "CMD":
					command = JSON.parse(text);
					break;
				case "HEALTHCHECK":
					health = JSON.parse(text.slice(text.indexOf("[")));
					break;
				default:
					break;
			}
		}
	}
	const last = stage;
	return {
		files: last.files,
		user: last.user,
		start: (run) => last.start(command, run),
		checkHealth: (run) => last.run(health, run),
	};
}

function copy(
	instruction: Copy,
	stage: Stage,
	stages: ReadonlyMap<string, Stage>,
	context: string,
): void {
	const from = instruction.getFromFlag()?.getValue();
	const paths = instruction
		.getArguments()
		.map((argument) => argument.getValue())
		.filter((argument) => !argument.startsWith("--"));
	const target = paths.pop() ?? ".";
	for (const source of paths) {
		const origin = from === undefined || from === null ? context : (stages.get(from)?.files ?? "");
		const isFolder = target.endsWith("/") || paths.length > 1;
		const to = join(stage.files, stage.workingDirectory, target);
		const destination = isFolder && source !== "." ? join(to, source.split("/").pop() ?? "") : to;
		mkdirSync(dirname(destination), { recursive: true });
		cpSync(join(origin, source), destination, { recursive: true, verbatimSymlinks: true });
	}
}
