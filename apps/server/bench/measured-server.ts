import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";

/** A server in its own process, whose processor time is read from the kernel. */
export interface MeasuredServer {
	readonly address: string;
	/** The processor time of all threads of the process so far, in microseconds. */
	cpuMicroseconds(): number;
	/** The resident memory of the process, in bytes. */
	residentBytes(): number;
	stop(): Promise<void>;
}

/**
 * Starts a program that prints its address.
 *
 * @param args - the program and its arguments, for Node.
 * @throws Error if it ends before it prints one.
 */
export async function startMeasured(args: readonly string[]): Promise<MeasuredServer> {
	const child = spawn(process.execPath, [...args], {
		stdio: ["ignore", "pipe", "inherit"],
		env: { ...process.env, NODE_ENV: "production" },
	});
	const { pid } = child;
	if (pid === undefined) {
		throw new Error(`could not start node ${args.join(" ")}`);
	}
	return {
		address: await addressOf(child),
		cpuMicroseconds: () => cpuMicroseconds(pid),
		residentBytes: () => residentBytes(pid),
		async stop() {
			const closed = once(child, "close");
			child.kill("SIGKILL");
			await closed;
		},
	};
}

async function addressOf(child: ChildProcess): Promise<string> {
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
	throw new Error(`the server ended before it printed an address: ${text}`);
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
	const [, kibibytes] =
		/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
	return Number(kibibytes) * 1_024;
}
