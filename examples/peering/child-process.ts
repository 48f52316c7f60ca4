import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../apps/server/src/main.ts", import.meta.url));

/** A server or an agent of the example, in a process of its own. */
export class PlinthProcess {
	readonly name: string;
	/** The URL at which it is called. */
	readonly address: string;
	readonly #logFile: string;
	readonly #child: ChildProcess;

	/**
	 * Starts it.
	 *
	 * @param flags - those of `plinth-server`, but for `--listen`.
	 * @param logFile - what it logs is appended there.
	 */
	constructor(name: string, port: number, flags: readonly string[], logFile: string) {
		this.name = name;
		this.address = `http://127.0.0.1:${port}`;
		this.#logFile = logFile;
		this.#child = spawn(process.execPath, [main, ...flags, `--listen=127.0.0.1:${port}`], {
			stdio: ["ignore", "ignore", "pipe"],
		});
		this.#child.stderr?.pipe(createWriteStream(logFile, { flags: "a" }));
	}

	get pid(): number | undefined {
		return this.#child.pid;
	}

	/** Resolves when it is ready. @throws Error if it has ended instead, or is not ready within the time. */
	async ready(timeoutMs = 60_000): Promise<void> {
		const end = Date.now() + timeoutMs;
		while (Date.now() < end) {
			if (this.#child.exitCode !== null) {
				throw new Error(
					`${this.name} has ended with exit code ${this.#child.exitCode}: see ${this.#logFile}`,
				);
			}
			const response = await fetch(`${this.address}/readyz`).catch(() => undefined);
			if (response?.ok === true) {
				return;
			}
			await new Promise((resolve) => setTimeout(resolve, 100));
		}
		throw new Error(`${this.name} is not ready after ${timeoutMs / 1_000} s: see ${this.#logFile}`);
	}

	/** Stops it, and resolves when it has ended. */
	async stop(): Promise<void> {
		if (this.#child.exitCode === null && this.#child.signalCode === null) {
			const ended = once(this.#child, "exit");
			this.#child.kill("SIGTERM");
			await ended;
		}
	}
}
