import { setTimeout } from "node:timers/promises";
import type { Random } from "@plinth/runtime";
import type { Target } from "./clients/life.ts";
import { read, type Workload, write } from "./clients/operate.ts";
import { perform } from "./clients/perform.ts";
import { Registers } from "./clients/registers.ts";
import { Watcher } from "./clients/watcher.ts";
import type { History } from "./history/history.ts";

/** How clients of a run behave. */
export interface RunOptions {
	readonly targets: readonly Target[];
	readonly random: Random;
	/** Waits between two operations of a client. */
	pause(): Promise<void>;
	/** How long watches may take to deliver everything after the faults, in milliseconds; a minute by default. */
	readonly settleMs?: number;
	/** What happens meanwhile; the clients end after it. */
	meanwhile(workload: Workload): Promise<void>;
}

/** The observations of the clients of a run. */
export interface ClientRun {
	readonly history: History;
	/** Watches that had to start again, with the error of the server. */
	readonly restarts: readonly string[];
}

const writersPerServer = 2;

/** Runs clients that write, read and watch at all servers. */
export async function runClients(options: RunOptions): Promise<ClientRun> {
	const { targets, random, pause, meanwhile, settleMs = 60_000 } = options;
	const operations: Workload["operations"] = [];
	const workload = { registers: new Registers(random), random, operations, pause };
	const clientsEnd = new AbortController();
	const watchesEnd = new AbortController();
	const watchers = [
		...targets.map((target) => new Watcher({ targets: [target], random })),
		new Watcher({ targets, random, moveAfterMs: 2000 }),
	];
	const watching = watchers.map((watcher) => watcher.run(watchesEnd.signal));
	const clients = targets.flatMap((target) => [
		...Array.from({ length: writersPerServer }, () => write(target, workload, clientsEnd.signal)),
		read(target, workload, true, clientsEnd.signal),
		read(target, workload, false, clientsEnd.signal),
	]);
	await meanwhile(workload);
	clientsEnd.abort();
	await Promise.all(clients);
	const last = await writeLast(targets, workload);
	const deadlineMs = performance.now() + settleMs;
	while (watchers.some(({ reached }) => reached < last) && performance.now() < deadlineMs) {
		await setTimeout(5);
	}
	watchesEnd.abort();
	await Promise.all(watching);
	const sessions = watchers.flatMap((watcher) => watcher.sessions);
	return {
		history: { operations, sessions },
		restarts: watchers.flatMap((watcher) => watcher.restarts),
	};
}

/** Writes and reads once more at each server. Returns the newest version. */
async function writeLast(
	targets: readonly Target[],
	{ registers, operations }: Workload,
): Promise<number> {
	let newest = 0;
	for (const target of targets) {
		const text = registers.text();
		for (let done = false; !done; ) {
			const life = await target.life(new AbortController().signal);
			if (life === undefined) {
				break;
			}
			const put = await perform(life, "r-last", { kind: "put", text }, true);
			const check = await perform(life, "r-last", { kind: "read" }, true);
			operations.push(put, check);
			if (check.outcome.kind === "value") {
				newest = Math.max(newest, Number(check.outcome.version));
			}
			done = put.outcome.kind === "value" && check.outcome.kind === "value";
		}
	}
	return newest;
}
