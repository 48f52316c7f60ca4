import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A fenced block of a page. */
export type Block =
	/** Lines to paste into the terminal of that name. */
	| { readonly kind: "commands"; readonly terminal: string; readonly text: string }
	/** What that terminal prints then; `…` stands for anything within a line, alone for any lines. */
	| { readonly kind: "output"; readonly terminal: string; readonly text: string };

const fence = /^```(?<language>\w+)(?: (?<terminal>\w+))?\n(?<text>.*?)^```$/gms;

/** The blocks of a page, in their order: `sh` is commands, anything else is output. */
export function blocksOf(markdown: string): readonly Block[] {
	return [...markdown.matchAll(fence)].map(({ groups }) => ({
		kind: groups?.language === "sh" ? "commands" : "output",
		terminal: groups?.terminal ?? "main",
		text: groups?.text ?? "",
	}));
}

/** Whether the output is what a page shows. */
export function isAsShown(output: string, shown: string): boolean {
	const lines = shown
		.trim()
		.split("\n")
		.map((line) => (line === "…" ? "[^]*" : line.split("…").map(escapeForPattern).join(".*")));
	return new RegExp(`^${lines.join("\\n")}$`).test(output.trim());
}

function escapeForPattern(text: string): string {
	return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A bash that lines are pasted into. */
export class Terminal {
	readonly #bash: ChildProcess;
	#output = "";
	#markers = 0;
	/** Resolves when it prints, or ends. */
	#changed = Promise.withResolvers<void>();

	constructor(folder: string) {
		// Through one pipe, so that all that a command prints comes before what the next one prints.
		this.#bash = spawn("bash", ["-c", "exec bash --noprofile --norc 2>&1"], {
			cwd: folder,
			// A group of its own, to be interrupted and ended with all that it started.
			detached: true,
			stdio: ["pipe", "pipe", "inherit"],
		});
		this.#bash.stdout?.setEncoding("utf8").on("data", (text: string) => {
			this.#output += text;
			this.#change();
		});
		this.#bash.once("exit", () => this.#change());
	}

	/** All that it has printed. */
	get output(): string {
		return this.#output;
	}

	/** Pastes lines that do not return by themselves. */
	paste(lines: string): void {
		this.#bash.stdin?.write(lines);
	}

	/** Pastes lines, and returns their output once the last one has returned. */
	async run(lines: string): Promise<string> {
		this.#markers += 1;
		const marker = `-- end of paste ${this.#markers} --`;
		const start = this.#output.length;
		this.paste(`${lines}\necho '${marker}'\n`);
		const end = await this.prints(marker);
		return this.#output.slice(start, end);
	}

	/**
	 * Resolves to where the text begins once it has been printed.
	 *
	 * @param failure What a command prints that will never print the text.
	 * @throws Error with all output if bash has ended, or `failure` was printed.
	 */
	async prints(text: string, failure?: string): Promise<number> {
		for (;;) {
			const at = this.#output.indexOf(text);
			if (at >= 0) {
				return at;
			}
			if (this.#bash.exitCode !== null || this.#bash.signalCode !== null) {
				throw new Error(`bash ended before it printed ${text}: ${this.#output}`);
			}
			if (failure !== undefined && this.#output.includes(failure)) {
				throw new Error(`a command failed before it printed ${text}: ${this.#output}`);
			}
			await this.#changed.promise;
		}
	}

	/** Interrupts what runs, as Ctrl-C does, and resolves when it has ended. */
	async interrupt(): Promise<void> {
		this.#bash.stdin?.end();
		this.#signal("SIGINT");
		await this.closed();
	}

	/** Resolves when all that it started has ended, by itself. */
	async closed(): Promise<void> {
		this.#bash.stdin?.end();
		if (this.#bash.stdout?.closed !== true) {
			await once(this.#bash, "close");
		}
	}

	/** Ends it, with all that it started. */
	kill(): void {
		this.#signal("SIGKILL");
	}

	#change(): void {
		this.#changed.resolve();
		this.#changed = Promise.withResolvers();
	}

	#signal(signal: NodeJS.Signals): void {
		const { pid } = this.#bash;
		if (pid !== undefined) {
			try {
				process.kill(-pid, signal);
			} catch {
				// It has ended.
			}
		}
	}
}
