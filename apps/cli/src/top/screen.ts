import type { Io, Terminal } from "../io.ts";

const enter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const leave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/**
 * The alternate screen of a terminal, without cursor and line wrap, until it is disposed of. What the terminal showed before
 * is shown again then.
 */
export class Screen implements Disposable {
	readonly #out: Io["out"];
	readonly #close: () => void;

	constructor(
		{ out }: Pick<Io, "out">,
		terminal: Terminal,
		handlers: Parameters<Terminal["open"]>[0],
	) {
		this.#out = out;
		this.#close = terminal.open(handlers);
		out(enter);
	}

	/** Shows the lines in place of what was shown, without flicker. */
	draw(lines: readonly string[]): void {
		const text = lines.map((line) => `${line}\x1b[K`).join("\r\n");
		this.#out(`\x1b[H${text}\x1b[J`);
	}

	[Symbol.dispose](): void {
		this.#out(leave);
		this.#close();
	}
}
