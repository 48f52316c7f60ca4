import { styleText } from "node:util";
import { prettyFactory } from "pino-pretty";
import { describeError } from "./describe-error.ts";
import { errorPlace } from "./error-place.ts";
import { isServerLog, parseServerLog, type ServerLog } from "./server-log.ts";

/** Where lines go. */
export interface TerminalOptions {
	readonly write: (text: string) => void;
	readonly color: boolean;
	/** The folder of the project, absolute. */
	readonly folder: string;
}

/** Log messages of every start and stop. The supervisor says what matters of them in one line. */
const repeated: ReadonlySet<string> = new Set([
	...["server ready", "server stopping", "server stopped", "storage loaded", "controller stopped"],
	"no tokens are configured: every caller has full rights",
	"starting the reference controllers",
	"acquired the lease of singleton controllers",
]);

const informational = 30;

/** The lines of `plinth dev`: its own, and those of the server. */
export class Terminal {
	readonly #options: TerminalOptions;
	readonly #pretty;
	/** Errors of the server that were shown with their code or their stack. */
	readonly #shown = new Set<string>();

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
		this.#options.write(`${this.#styled(["red"], "[plinth]")} ${this.#framed(text)}\n`);
	}

	/** A line of the server's output: a line of its log, or what the project's code has printed. */
	serverLine(line: string): void {
		const log = isServerLog(line) ? parseServerLog(line) : undefined;
		if (log === undefined) {
			this.#options.write(`${line}\n`);
		} else if (log.level !== informational || !repeated.has(log.msg)) {
			this.#log(log);
		}
	}

	/** The code is another one: errors are shown with their code again. */
	restarted(): void {
		this.#shown.clear();
	}

	#log({ error, ...log }: ServerLog): void {
		const { folder } = this.#options;
		if (error === undefined) {
			this.#options.write(this.#pretty(log.fields));
			return;
		}
		const { err: _, ...fields } = log.fields;
		this.#options.write(this.#pretty(fields));
		const text = describeError(error, folder).trimEnd();
		const isNew = !this.#shown.has(text);
		this.#shown.add(text);
		// The code says more than a stack, which is mostly Plinth's own.
		const isOfProject = errorPlace(error, folder) !== undefined;
		const [first = ""] = text.split("\n");
		const shown = isNew ? `${text}${isOfProject ? "\n" : ""}` : first;
		this.#options.write(`${isOfProject ? this.#framed(shown) : shown}\n`);
	}

	#framed(text: string): string {
		const [first = "", ...rest] = text.split("\n");
		return [this.#styled(["bold"], first), ...rest.map((line) => this.#frameLine(line))].join("\n");
	}

	#frameLine(line: string): string {
		const isMarked = /^ {2}> |^ +\| +\^+$/.test(line);
		return isMarked ? this.#styled(["red"], line) : line;
	}

	#styled(style: Parameters<typeof styleText>[0], text: string): string {
		return this.#options.color ? styleText(style, text, { validateStream: false }) : text;
	}
}
