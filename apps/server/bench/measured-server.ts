import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";

/** A server in a process of its own, whose processor time is read from the kernel. */
export interface MeasuredServer {
	readonly address: string;
	/** Microseconds that all threads of the process have run so far. */
	cpuMicroseconds(): number;
	stop(): Promise<void>;
}

/**
 * Starts a program that prints its address.
 *
 * @param args - the program and its arguments, for Node.
 * @throws Error where it ends before it prints one.
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
			// What else it prints must not fill the pipe.
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
