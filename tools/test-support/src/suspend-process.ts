import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";

/**
 * Stops a process with SIGSTOP, and resolves when all its threads have stopped. Until each of them has received
 * the signal, which takes a while on a busy machine, the process still responds.
 */
export async function suspendProcess(child: ChildProcess | undefined): Promise<void> {
	if (child?.pid === undefined || !child.kill("SIGSTOP")) {
		return;
	}
	const tasks = `/proc/${child.pid}/task`;
	if (!existsSync(tasks)) {
		await setTimeout(200);
		return;
	}
	for (;;) {
		const threads = await readdir(tasks);
		const states = await Promise.all(threads.map((thread) => stateOf(`${tasks}/${thread}/stat`)));
		if (states.every((state) => state !== "R" && state !== "S" && state !== "D")) {
			return;
		}
		await setTimeout(1);
	}
}

/** The letter of a thread's state: T is stopped. Undefined if the thread has ended. */
async function stateOf(file: string): Promise<string | undefined> {
	const text = await readFile(file, "utf8").catch(() => "");
	return /^.*\) (?<state>.)/s.exec(text)?.groups?.state;
}
