/**
 * The cost of constraints for a type without references, in processor time, through the in-process client: over the
 * storage in memory, where nothing else takes time, and over SQLite with 64 writers. Each server has a process of its
 * own, since the code of the storage would otherwise be compiled for all of them, and fit none. The meta deployment,
 * which the one with constraints needs, is in all of these processes. They take turns. No garbage collection is forced:
 * it doubles the processor time of the calls that follow, and hides a cost of a few percent. Two processes of equal
 * servers differ by up to a quarter for as long as they run, since the compiler decides differently, so each server is
 * started again many times. A second one with the bare storage shows what difference is left.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ComparisonTable, interleaveSteps, unlessQuick } from "@plinth/bench";
import { type Step, steps, type WriterOptions } from "./plain-writer.ts";

const starts = unlessQuick(12, 1);
const roundsPerStart = unlessQuick(6, 2);
const warmUpRounds = unlessQuick(8, 0);

/** A server in a process of its own. */
class Writer implements AsyncDisposable {
	readonly #child: ChildProcess;

	private constructor(child: ChildProcess) {
		this.#child = child;
	}

	/** Starts it; resolves once it can be measured. */
	static async start(options: WriterOptions): Promise<Writer> {
		const script = fileURLToPath(new URL("./plain-writer.ts", import.meta.url));
		const child = fork(script, [JSON.stringify(options), ...process.argv.slice(2)]);
		await reply(child);
		return new Writer(child);
	}

	/** The steps of a round, in microseconds for each call. */
	steps() {
		return Object.fromEntries(steps.map((step) => [step, () => this.#run(step)])) as Record<
			Step,
			() => Promise<number>
		>;
	}

	async #run(step: Step): Promise<number> {
		this.#child.send(step);
		return Number(await reply(this.#child));
	}

	async [Symbol.asyncDispose](): Promise<void> {
		const exited = once(this.#child, "exit");
		this.#child.disconnect();
		await exited;
	}
}

/** The next message of a child process. */
async function reply(child: ChildProcess): Promise<unknown> {
	const done = new AbortController();
	const exited = once(child, "exit", { signal: done.signal }).then(([code]) => {
		throw new Error(`a server has exited with ${code}: see its output above`);
	});
	try {
		const [message] = await Promise.race([once(child, "message"), exited]);
		return message;
	} finally {
		exited.catch(() => {});
		done.abort();
	}
}

/** The figures of servers that are started, take turns for some rounds, and end. */
async function measure(options: Omit<WriterOptions, "constrained">) {
	await using constrained = await Writer.start({ ...options, constrained: true });
	await using bare = await Writer.start({ ...options, constrained: false });
	await using other = await Writer.start({ ...options, constrained: false });
	return await interleaveSteps(
		{
			"with constraints": () => constrained.steps(),
			"another bare storage": () => other.steps(),
			"bare storage": () => bare.steps(),
		},
		{ rounds: roundsPerStart, warmUpRounds },
	);
}

/** Compares servers with storages of one kind. */
async function compare(title: string, options: Omit<WriterOptions, "constrained">): Promise<void> {
	const measured: Awaited<ReturnType<typeof measure>>[] = [];
	for (let start = 0; start < starts; start++) {
		measured.push(await measure(options));
	}
	const table = new ComparisonTable(title, "µs", { baseline: "bare storage" });
	for (const [step, contenders] of Object.entries(measured[0] ?? {})) {
		const figuresOf = (name: string) => measured.flatMap((each) => each[step]?.[name] ?? []);
		table.add(
			step,
			Object.fromEntries(Object.keys(contenders).map((name) => [name, figuresOf(name)])),
		);
	}
	table.print();
}

await compare("A type without references, in process and in memory", { writers: 1 });
const folder = await mkdtemp(join(tmpdir(), "plinth-bench-"));
try {
	await compare("The same over SQLite, with 64 writers", { writers: 64, folder });
} finally {
	await rm(folder, { recursive: true });
}
