import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAsShown, Terminal } from "@plinth/example-catalog/testing";
import type { Checkout } from "./checkout.ts";
import { root } from "./page.ts";

/** What a command that failed leaves in the output, before its exit code. */
const failureMark = "-- failed with exit code ";

/** Lines that change nothing. What they read may be there a moment later. */
const reading = /^plinth (get|list|describe|status|refs|controllers|types)\b[^|]*$/;

/** How often it is looked again for what may be there a moment later, and after which pause. */
const maxTries = 20;
const pauseMs = 250;

/** The terminals of someone who follows a page: `main`, and one for each thing that goes on. */
export class Terminals {
	readonly #checkout: Checkout;
	readonly #port: number;
	readonly #open = new Map<string, Terminal>();
	/** The last line of what was run last, where it only reads. */
	#lastLine = "";
	/** What the lines before it have printed, and what it has. */
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

	/** Starts what goes on, in a terminal of its own; in place of what goes on there. */
	async start(name: string, lines: string): Promise<void> {
		await this.stop(name);
		const terminal = this.#start(name);
		terminal.paste(lines);
		if (name === "server") {
			await terminal.prints("Try next");
		}
	}

	/** Presses Ctrl-C in a terminal, and waits for the end of what runs there. */
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

	/** What was printed by the lines that were run last, where one of them failed. */
	get failure(): string | undefined {
		const printed = this.#before + this.#last;
		return printed.includes(failureMark) ? printed : undefined;
	}

	/**
	 * Compares what a terminal has printed, in `main` since the last `run`, with what a page shows.
	 *
	 * @returns what was printed, where it differs for good.
	 */
	async compare(name: string, shown: string): Promise<string | undefined> {
		for (let tries = 1; ; tries += 1) {
			const printed =
				name === "main" ? this.#before + this.#last : (this.#open.get(name)?.output ?? "");
			if (looksLike(withoutFailures(printed), shown)) {
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
			name === "server"
				? `export PLINTH_LISTEN=${address}`
				: `export PLINTH_SERVER=http://${address}`,
			`trap 'echo "${failureMark}$?: $BASH_COMMAND"' ERR`,
		];
		terminal.paste(`${lines.join("\n")}\n`);
		return terminal;
	}
}

function withoutFailures(printed: string): string {
	return printed
		.split("\n")
		.filter((line) => !line.startsWith(failureMark))
		.join("\n");
}

/** Whether output is as shown, however wide the columns of its tables are. */
function looksLike(printed: string, shown: string): boolean {
	const narrow = (text: string) => text.replaceAll(/(?<=\S) {2,}/g, "  ");
	return isAsShown(narrow(printed), narrow(shown));
}
