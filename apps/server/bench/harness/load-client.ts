/** The load generator: one process for all contenders, which is either the client in Go or the one in JavaScript. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { GoPrograms } from "./go-programs.ts";
import { pinned, processors } from "./processors.ts";

export type Protocol = "gRPC" | "Connect, JSON";

/** The calls that callers repeat. */
export type CallOperation = "read" | "create" | "update" | "list" | "snapshot";

/** What the client shall do, as one line of JSON. */
export interface LoadCommand {
	/**
	 * `openWatches` opens further watches, which stay open until `closeWatches`. `fanOut` lets all writers update what they
	 * watch, and waits until all watches have received these updates, again and again.
	 */
	readonly operation: CallOperation | "openWatches" | "closeWatches" | "fanOut";
	/** Host and port. */
	readonly address: string;
	readonly token: string;
	readonly connections: number;
	/** How many calls are made at the same time, for operations that repeat a call. */
	readonly callers: number;
	/** How many calls to make in total, or how often to fan out. */
	readonly count: number;
	/** How many watches to open. */
	readonly watches: number;
	/**
	 * Starts so many calls per second, however long they take, instead of one call of each caller after the other. They
	 * are spread over the connections.
	 */
	readonly perSecond?: number;
}

/** What the client has done, as one line of JSON. */
export interface LoadResult {
	/** The calls that were made, the watches that were opened, or the events that were received. */
	readonly count: number;
	/** How long that took. */
	readonly seconds: number;
	/** Latencies of calls at a fixed rate, each from the time at which its call was due. */
	readonly p50Microseconds?: number;
	readonly p99Microseconds?: number;
}

export interface LoadClient {
	/** One command after the other. @throws Error if a call fails. */
	run(command: LoadCommand): Promise<LoadResult>;
	stop(): void;
}

/** The client in Go if it is built; it speaks gRPC only. */
export function startClient(protocol: Protocol, go: GoPrograms | undefined): LoadClient {
	const js = [process.execPath, join(import.meta.dirname, "../js-client.ts"), protocol];
	return startProgram(go === undefined || protocol !== "gRPC" ? js : [go.client]);
}

/** Starts a program that reads commands from standard input, and writes a result for each. */
function startProgram(command: readonly string[]): LoadClient {
	const [program = "", ...args] = pinned(command, processors?.client);
	const child: ChildProcessByStdio<Writable, Readable, null> = spawn(program, args, {
		stdio: ["pipe", "pipe", "inherit"],
		env: { ...process.env, NODE_ENV: "production", GOMAXPROCS: "1" },
	});
	process.on("exit", () => child.kill("SIGKILL"));
	const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
	return {
		async run(next) {
			child.stdin.write(`${JSON.stringify(next)}\n`);
			const { value: line, done } = await lines.next();
			if (done) {
				throw new Error("the client has ended");
			}
			const result: LoadResult & { readonly error?: string } = JSON.parse(line);
			if (result.error !== undefined) {
				throw new Error(`${next.operation}: ${result.error}`);
			}
			return result;
		},
		stop: () => child.kill(),
	};
}
