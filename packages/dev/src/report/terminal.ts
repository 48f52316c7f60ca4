import { styleText } from "node:util";
import { prettyFactory } from "pino-pretty";

/** Where lines go. */
export interface TerminalOptions {
	readonly write: (text: string) => void;
	readonly color: boolean;
}

/** Log messages of every start and stop. The supervisor says what matters of them in one line. */
const repeated: ReadonlySet<string> = new Set([
	...["server ready", "server stopping", "server stopped", "storage loaded", "controller stopped"],
	"no tokens are configured: every caller has full rights",
	"starting the reference controllers",
	"acquired the lease of singleton controllers",
]);

/** The lines of `plinth dev`: its own, and those of the server. */
export class Terminal {
	readonly #options: TerminalOptions;
	readonly #pretty;

	constructor(options: TerminalOptions) {
		this.#options = options;
		this.#pretty = prettyFactory({
			colorize: options.color,
			ignore: "pid,hostname",
			singleLine: true,
		});
	}

	/** A line of `plinth dev` itself. */
	say(text: string, style: "cyan" | "green" | "yellow" = "cyan"): void {
		this.#options.write(`${this.#styled([style], "[plinth]")} ${text}\n`);
	}

	/** A problem of the project, with its code. */
	problem(text: string): void {
		const [first = "", ...rest] = text.split("\n");
		const lines = [this.#styled(["bold"], first), ...rest.map((line) => this.#frameLine(line))];
		this.#options.write(`${this.#styled(["red"], "[plinth]")} ${lines.join("\n")}\n`);
	}

	/** A line of the server's output: a line of its log, or what the project's code has printed. */
	serverLine(line: string): void {
		if (!line.startsWith('{"level":')) {
			this.#options.write(`${line}\n`);
		} else if (!isRepeated(line)) {
			this.#options.write(this.#pretty(line));
		}
	}

	#frameLine(line: string): string {
		const isMarked = /^ {2}> |^ +\| +\^+$/.test(line);
		return isMarked ? this.#styled(["red"], line) : line;
	}

	#styled(style: Parameters<typeof styleText>[0], text: string): string {
		return this.#options.color ? styleText(style, text, { validateStream: false }) : text;
	}
}

function isRepeated(line: string): boolean {
	const [, message = ""] = /"msg":"([^"]*)"\}$/.exec(line) ?? [];
	return line.startsWith('{"level":30,') && repeated.has(message);
}
