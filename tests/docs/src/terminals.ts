import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAsShown, Terminal } from "@plinth/example-catalog/testing";
import type { Checkout } from "./checkout.ts";
import { root } from "./page.ts";

/** Printed when a command fails, before its exit code. */
const failureMark = "-- failed with exit code ";

/** Printed by `plinth dev` where the import of the user's code takes long, as it may on a busy machine. */
const slowness = /^\[plinth\] the import of the module has taken \d+ s and goes on:/;

/** Commands that only read. Their output may change a moment later. */
const reading = /^(npx )?plinth (get|list|describe|status|refs|controllers|types)\b[^|]*$/;

/** How often such a command is repeated, and the delay between two attempts. */
const maxTries = 480;
const pauseMs = 250;

/** The terminals of a reader: `main`, and one for each command that keeps running. */
export class Terminals {
	readonly #checkout: Checkout;
	readonly #port: number;
	readonly #open = new Map<string, Terminal>();
	/** The last command, if it only reads. */
	#lastLine = "";
	/** The output of the commands before it, and its own. */
	#before = "";
	#last = "";

	/** @param port Where servers listen and commands look. */
	constructor(checkout: Checkout, port: number) {
		this.#checkout = checkout;
		this.#port = port;
	}

	/** Pastes lines into the main terminal, and waits until the last one has returned. */
	async run(lines: string): Promise<void> {
		const terminal = this.#open.get("main") ?? this.#start("main");
		const [last = "", ...before] = lines.trimEnd().split("\n").reverse();
		const isReading = reading.test(last);
		this.#lastLine = isReading ? last : "";
		this.#before = await terminal.run(isReading ? before.reverse().join("\n") : lines);
		this.#last = isReading ? await terminal.run(last) : "";
	}

	/** Starts a command that keeps running in its own terminal, and ends the one that ran there. */
	async start(name: string, lines: string): Promise<void> {
		await this.stop(name);
		const terminal = this.#start(name);
		terminal.paste(lines);
		if (name === "server") {
			await terminal.prints(lines.includes("npm run dev") ? "] ready in" : "Try next", failureMark);
		}
	}

	/** Presses Ctrl-C in a terminal, and waits until its command has ended. */
	async stop(name: string): Promise<void> {
		await this.#open.get(name)?.interrupt();
		this.#open.delete(name);
	}

	/** Ends everything. */
	kill(): void {
		for (const terminal of this.#open.values()) {
			terminal.kill();
		}
	}

	/** The output of the last commands, if one of them failed. */
	get failure(): string | undefined {
		const printed = this.#before + this.#last;
		return printed.includes(failureMark) ? printed : undefined;
	}

	/**
	 * Compares the output of a terminal, in `main` since the last `run`, with the text of a page.
	 *
	 * @returns the output, if it still differs after all attempts.
	 */
	async compare(name: string, shown: string): Promise<string | undefined> {
		for (let tries = 1; ; tries += 1) {
			const printed =
				name === "main" ? this.#before + this.#last : (this.#open.get(name)?.output ?? "");
			if (looksLike(withoutMarks(printed), shown)) {
				return undefined;
			}
			const mayChange = name !== "main" || this.#lastLine !== "";
			if (!mayChange || tries === maxTries) {
				return printed;
			}
			await sleep(pauseMs);
			if (name === "main") {
				this.#last = (await this.#open.get("main")?.run(this.#lastLine)) ?? "";
			}
		}
	}

	#start(name: string): Terminal {
		const { folder } = this.#checkout;
		const terminal = new Terminal(folder);
		this.#open.set(name, terminal);
		const address = `127.0.0.1:${this.#port}`;
		const path = [join(root, "tests/docs/bin"), join(root, "node_modules/.bin"), process.env.PATH];
		const lines = [
			`export PATH='${path.join(":")}' HOME='${folder}' XDG_CONFIG_HOME='${folder}/.config'`,
			// What Go has downloaded and compiled before.
			`export GOPATH='${join(homedir(), "go")}' GOCACHE='${join(homedir(), ".cache/go-build")}'`,
			name === "server"
				? `export PLINTH_LISTEN=${address}`
				: `export PLINTH_SERVER=http://${address}`,
			`trap 'echo "${failureMark}$?: $BASH_COMMAND"' ERR`,
		];
		terminal.paste(`${lines.join("\n")}\n`);
		return terminal;
	}
}

/** Without what is in no page: marks of failed commands, and words about a machine that is slow. */
function withoutMarks(printed: string): string {
	return printed
		.split("\n")
		.filter((line) => !line.startsWith(failureMark) && !slowness.test(line))
		.join("\n");
}

/** Whether output is as shown, whatever the width of its columns. */
function looksLike(printed: string, shown: string): boolean {
	const narrow = (text: string) => text.replaceAll(/(?<=\S) {2,}/g, "  ");
	return isAsShown(narrow(printed), narrow(shown));
}
