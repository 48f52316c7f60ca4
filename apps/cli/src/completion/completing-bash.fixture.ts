import { spawn } from "node:child_process";
import { once } from "node:events";
import { Duplex, type Writable } from "node:stream";

/** Where a bash completes, and what it runs as `plinth`. */
export interface CompletingBashOptions {
	readonly folder: string;
	readonly env?: Readonly<Record<string, string>>;
	/** Runs `plinth` within the test; without it, bash runs the program that it finds in the PATH. */
	readonly plinth?: (
		args: readonly string[],
	) => Promise<{ readonly code: number; readonly out: string }>;
}

/** File descriptor 3 is a socket to the test, which gets the arguments and returns exit code and output. */
const plinthOfTheTest = `
plinth() {
  local code out
  printf '%s\\0' "$#" "$@" >&3
  IFS= read -r -d '' -u 3 code && IFS= read -r -d '' -u 3 out || return 1
  printf '%s' "$out"
  return "$code"
}
`;

const completeLines = `
source <(plinth completion bash)
complete -p plinth > /dev/null || exit 1
while IFS= read -r line; do
  # Words as readline breaks them, with = as a word of its own.
  COMP_LINE=$line COMP_POINT=\${#line} COMPREPLY=()
  read -r -a COMP_WORDS <<< "\${line//=/ = }"
  [[ $line == *[[:space:]] ]] && COMP_WORDS+=("")
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _plinth
  printf '%s\\n' "\${COMPREPLY[@]}"
  printf '\\0'
done
`;

/** A real bash with plinth's completion, which completes one line after the other. */
export class CompletingBash {
	readonly #lines: Writable;
	readonly #completions: AsyncIterator<string>;
	readonly #ended: Promise<unknown>;

	constructor({ folder, env, plinth }: CompletingBashOptions) {
		const script = `${plinth === undefined ? "" : plinthOfTheTest}${completeLines}`;
		const bash = spawn("bash", ["--norc", "-c", script], {
			cwd: folder,
			env: { ...process.env, ...env },
			stdio: ["pipe", "pipe", "inherit", "pipe"],
		});
		const [lines, completions, , calls] = bash.stdio;
		if (lines === null || completions === null || !(calls instanceof Duplex)) {
			throw new Error("bash has no pipes");
		}
		this.#lines = lines;
		this.#completions = texts(completions);
		this.#ended = once(bash, "close");
		if (plinth !== undefined) {
			void answer(calls, plinth);
		}
	}

	/** What the line is completed to. Its words are split as bash splits them. */
	async completes(line: string): Promise<readonly string[]> {
		this.#lines.write(`${line}\n`);
		const { value, done } = await this.#completions.next();
		if (done === true) {
			throw new Error(`bash ended before it completed ${line}`);
		}
		return value.trim().split("\n");
	}

	async close(): Promise<void> {
		this.#lines.end();
		await this.#ended;
	}
}

/** Runs plinth for each call: a call is the number of its arguments, and these. */
async function answer(
	calls: Duplex,
	plinth: NonNullable<CompletingBashOptions["plinth"]>,
): Promise<void> {
	let call: string[] = [];
	for await (const text of texts(calls)) {
		call.push(text);
		const [count, ...args] = call;
		if (args.length === Number(count)) {
			call = [];
			const { code, out } = await plinth(args);
			calls.write(`${code}\0${out}\0`);
		}
	}
}

/** The texts that a stream ends with a zero byte each. */
async function* texts(stream: AsyncIterable<Buffer | string>): AsyncGenerator<string, void> {
	let pending = "";
	for await (const chunk of stream) {
		const parts = `${pending}${chunk}`.split("\0");
		pending = parts.pop() ?? "";
		yield* parts;
	}
}
