/** Which processors programs run on: the measured server on one, the client on another. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface Processors {
	readonly server: number;
	readonly client: number;
}

/** Two processors of this process, or undefined if programs can't be pinned to them. */
export const processors: Processors | undefined = findProcessors();

function findProcessors(): Processors | undefined {
	if (spawnSync("taskset", ["--version"]).status !== 0) {
		return undefined;
	}
	const [server, client] = allowedProcessors();
	return server === undefined || client === undefined ? undefined : { server, client };
}

/** The list in `/proc/self/status`, such as `0-3,6`. */
function allowedProcessors(): readonly number[] {
	const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
	return (list ?? "").split(",").flatMap((range) => {
		const [first = Number.NaN, last = first] = range.split("-").map(Number);
		return Array.from({ length: last - first + 1 }, (_, index) => first + index);
	});
}

/** A command that runs on one processor, if one is named. */
export function pinned(
	command: readonly string[],
	processor: number | undefined,
): readonly string[] {
	return processor === undefined ? command : ["taskset", "-c", `${processor}`, ...command];
}
