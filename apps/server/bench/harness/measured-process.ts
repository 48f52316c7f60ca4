import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { pinned, processors } from "./processors.ts";

/** A server in its own process, whose costs are read from the kernel. */
export interface MeasuredServer {
	/** As a URL. */
	readonly address: string;
	/** The processor time of all threads of the process so far, in microseconds. */
	cpuMicroseconds(): number;
	/** The resident memory of the process, in bytes. */
	residentBytes(): number;
	stop(): Promise<void>;
}

const children = new Set<ChildProcess>();
process.on("exit", () => {
	for (const child of children) {
		child.kill("SIGKILL");
	}
});

/**
 * Starts a program that prints its address.
 *
 * @param logFile - receives what it writes to standard error, as the log of a server does.
 * @throws Error if it ends before it prints one.
 */
export async function startMeasured(
	command: readonly string[],
	logFile: string,
): Promise<MeasuredServer> {
	const [program = "", ...args] = pinned(command, processors?.server);
	const log = openSync(logFile, "a");
	const child = spawn(program, args, {
		stdio: ["ignore", "pipe", log],
		env: { ...process.env, NODE_ENV: "production" },
	});
	closeSync(log);
	const { pid } = child;
	if (pid === undefined) {
		throw new Error(`could not start ${command.join(" ")}`);
	}
	children.add(child);
	const address = await addressOf(child);
	if (address === undefined) {
		throw new Error(`${command.join(" ")} ended:\n${readFileSync(logFile, "utf8")}`);
	}
	return {
		address,
		cpuMicroseconds: () => cpuMicroseconds(pid),
		residentBytes: () => residentBytes(pid),
		async stop() {
			const closed = once(child, "close");
			child.kill("SIGKILL");
			await closed;
			children.delete(child);
		},
	};
}

async function addressOf(child: ChildProcess): Promise<string | undefined> {
	let text = "";
	for await (const chunk of child.stdout ?? []) {
		text += chunk;
		const address = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
		if (address !== undefined) {
			// Further output must not fill the pipe.
			child.stdout?.on("data", () => {});
			return address;
		}
	}
	return undefined;
}

/** The first number of a thread's schedstat is the time on a processor, in nanoseconds. */
function cpuMicroseconds(pid: number): number {
	let nanoseconds = 0;
	for (const thread of readdirSync(`/proc/${pid}/task`)) {
		const [onCpu = "0"] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
		nanoseconds += Number(onCpu);
	}
	return nanoseconds / 1_000;
}

function residentBytes(pid: number): number {
	const kibibytes = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
	return Number(kibibytes) * 1_024;
}
