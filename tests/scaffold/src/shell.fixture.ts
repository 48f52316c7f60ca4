import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, dirname } from "node:path";

/** Runs command lines as a user types them: with one version of Node, and with an npm that knows one registry. */
export interface Shell {
	/** Runs a command to its end, and returns what it has printed. Fails unless it exits with 0. */
	run(command: string, options?: ShellOptions): Promise<string>;
	/** Starts a command that runs until it is stopped. */
	start(command: string, options?: ShellOptions): RunningCommand;
}

export interface ShellOptions {
	readonly environment?: Readonly<Record<string, string>>;
}

/** A command that runs. */
export interface RunningCommand extends AsyncDisposable {
	/** Resolves when it has printed the text, and fails if it ends before. */
	printed(text: string): Promise<void>;
}

export interface ShellSettings {
	/** The program of Node. */
	readonly node: string;
	readonly registry: string;
	/** The folder of npm's cache and configuration. */
	readonly home: string;
}

/** A shell in a folder. */
export function openShell(folder: string, settings: ShellSettings): Shell {
	const spawnIn = (command: string, { environment = {} }: ShellOptions = {}) =>
		spawn(command, {
			cwd: folder,
			shell: true,
			// A group of its own: the processes that it starts are stopped with it.
			detached: true,
			stdio: ["ignore", "pipe", "pipe"],
			env: { ...userEnvironment(settings), ...environment },
		});
	return {
		async run(command, options) {
			const child = spawnIn(command, options);
			const output = collect(child);
			const [code] = await once(child, "close");
			if (code !== 0) {
				throw new Error(`${command} exited with ${code}:\n${output()}`);
			}
			return output();
		},
		start: (command, options) => running(command, spawnIn(command, options)),
	};
}

/** The variables that a user has: without those of the package manager and of the tests that run this. */
function userEnvironment({ node, registry, home }: ShellSettings): NodeJS.ProcessEnv {
	const inherited = Object.entries(process.env).filter(
		([name]) => !/^(npm|pnpm|plinth|vitest|node_env|node_path|turbo|init_cwd|ci$)/i.test(name),
	);
	const path = process.env.PATH?.split(delimiter).filter((each) => !each.includes("node_modules"));
	return {
		...Object.fromEntries(inherited),
		PATH: [dirname(node), ...(path ?? [])].join(delimiter),
		HOME: home,
		npm_config_registry: registry,
		npm_config_update_notifier: "false",
	};
}

/** What a process has printed so far. */
function collect(child: ChildProcess): () => string {
	const parts: string[] = [];
	for (const stream of [child.stdout, child.stderr]) {
		stream?.setEncoding("utf8").on("data", (text: string) => parts.push(text));
	}
	return () => parts.join("");
}

function running(command: string, child: ChildProcess): RunningCommand {
	const output = collect(child);
	const ended = once(child, "close");
	return {
		async printed(text) {
			while (!output().includes(text)) {
				const data = [child.stdout, child.stderr].map((stream) => stream && once(stream, "data"));
				const isOver = await Promise.race([
					...data.map((each) => each?.then(() => false)),
					ended.then(() => true),
				]);
				if (isOver) {
					throw new Error(`${command} ended without printing "${text}":\n${output()}`);
				}
			}
		},
		async [Symbol.asyncDispose]() {
			if (child.exitCode === null && child.pid !== undefined) {
				process.kill(-child.pid, "SIGTERM");
			}
			await ended;
		},
	};
}
