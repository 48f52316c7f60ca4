import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const main = fileURLToPath(new URL("./main.ts", import.meta.url));

/** The module of the tests, as a value of `--module`. */
export const musicModuleFile = fileURLToPath(
	new URL("../testdata/modules/module.ts", import.meta.url),
);

/** The same, but its calls never end. */
export const stuckModuleFile = fileURLToPath(
	new URL("../testdata/modules/stuck/module.ts", import.meta.url),
);

/** How a process ended, and its output. */
export interface Ended {
	readonly code: number | null;
	readonly signal: NodeJS.Signals | null;
	readonly stdout: string;
	readonly stderr: string;
}

/** A program that runs the process, with its arguments. The process must stay a child of the test. */
export interface Tracer {
	readonly tracer: readonly string[];
}

/** Options of the runtime, such as `--max-old-space-size=512`. */
export interface RuntimeOptions {
	readonly node: readonly string[];
}

/** A server in its own process. */
export class ServerProcess {
	readonly #child: ChildProcess;
	readonly ended: Promise<Ended>;
	#stdout = "";
	#stderr = "";

	/** Starts `main.ts` with these arguments. It is killed when the test is over. */
	constructor(...args: readonly (string | Tracer | RuntimeOptions)[]) {
		const flags = args.filter((each) => typeof each === "string");
		const others = args.filter((each) => typeof each !== "string");
		const tracer = others.flatMap((each) => ("tracer" in each ? each.tracer : []));
		const node = others.flatMap((each) => ("node" in each ? each.node : []));
		const [command = "", ...rest] = [...tracer, process.execPath, ...node, main, ...flags];
		const child = spawn(command, rest, { stdio: ["ignore", "pipe", "pipe"] });
		this.#child = child;
		child.stdout.setEncoding("utf8").on("data", (text: string) => {
			this.#stdout += text;
		});
		child.stderr.setEncoding("utf8").on("data", (text: string) => {
			this.#stderr += text;
		});
		this.ended = once(child, "close").then(([code, signal]) => ({
			code,
			signal,
			stdout: this.#stdout,
			stderr: this.#stderr,
		}));
		onTestFinished(() => {
			child.kill("SIGKILL");
		});
	}

	get stdout(): string {
		return this.#stdout;
	}

	get stderr(): string {
		return this.#stderr;
	}

	kill(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	/** Resolves to the address once the server has printed its startup message. */
	async listening(): Promise<string> {
		await this.#says(this.#child.stdout, () => this.#stdout, /Try next.*\n.*curl.*\n/);
		const address = /http:\/\/\S+/.exec(this.#stdout)?.[0];
		if (address === undefined) {
			throw new Error(`no address in: ${this.#stdout}`);
		}
		return address;
	}

	/** Resolves once standard output has the text. */
	async prints(pattern: RegExp): Promise<void> {
		await this.#says(this.#child.stdout, () => this.#stdout, pattern);
	}

	/** Resolves once standard error has the text. */
	async logs(pattern: RegExp): Promise<void> {
		await this.#says(this.#child.stderr, () => this.#stderr, pattern);
	}

	async #says(
		stream: NodeJS.ReadableStream | null,
		text: () => string,
		pattern: RegExp,
	): Promise<void> {
		if (stream === null) {
			throw new Error("the stream is not open");
		}
		while (!pattern.test(text())) {
			const ended = await Promise.race([once(stream, "data").then(() => undefined), this.ended]);
			if (ended !== undefined) {
				throw new Error(`ended with ${ended.code} before it said ${pattern}: ${ended.stderr}`);
			}
		}
	}
}
