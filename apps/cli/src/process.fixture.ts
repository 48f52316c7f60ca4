import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** The command itself. */
export const plinthMain = fileURLToPath(new URL("./main.ts", import.meta.url));

const serverMain = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));

/** How a process ended, and all that it wrote. */
export interface Ended {
	readonly code: number | null;
	readonly out: string;
	readonly err: string;
}

/** A process of the test, which kills it when it is over. */
export class TestProcess {
	readonly #child: ChildProcess;
	readonly ended: Promise<Ended>;
	#out = "";
	#err = "";
	#changed = Promise.withResolvers<void>();
	#isEnded = false;

	constructor(
		command: string,
		args: readonly string[],
		env: Record<string, string> = {},
		stdin = "",
	) {
		const child = spawn(command, args, { env: { ...process.env, ...env } });
		this.#child = child;
		child.stdout.setEncoding("utf8").on("data", (text: string) => {
			this.#out += text;
			this.#note();
		});
		child.stderr.setEncoding("utf8").on("data", (text: string) => {
			this.#err += text;
			this.#note();
		});
		child.stdin.end(stdin);
		this.ended = once(child, "close").then(([code]) => {
			this.#isEnded = true;
			this.#note();
			return { code: typeof code === "number" ? code : null, out: this.#out, err: this.#err };
		});
		onTestFinished(() => {
			child.kill("SIGKILL");
		});
	}

	kill(signal: NodeJS.Signals): void {
		this.#child.kill(signal);
	}

	/** Resolves once what it has written matches. */
	async prints(pattern: RegExp): Promise<void> {
		while (!pattern.test(this.#out + this.#err)) {
			if (this.#isEnded) {
				throw new Error(`it ended before it printed ${pattern}: ${this.#out}${this.#err}`);
			}
			await this.#changed.promise;
		}
	}

	#note(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}
}

/** Runs `plinth-server` to its end. */
export function runServer(args: readonly string[]): Promise<Ended> {
	return new TestProcess(process.execPath, [serverMain, ...args]).ended;
}
