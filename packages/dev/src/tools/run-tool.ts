import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** The result of a tool: its exit code, and all that it has printed. */
export interface ToolResult {
	/** `undefined` if it was killed. */
	readonly code: number | undefined;
	readonly output: string;
}

/** The program of a tool that is installed for the project, or `undefined`. Looks in the parent folders, too. */
export function findTool(folder: string, name: string): string | undefined {
	const file = process.platform === "win32" ? `${name}.cmd` : name;
	for (let each = folder; ; each = dirname(each)) {
		const path = join(each, "node_modules", ".bin", file);
		if (existsSync(path)) {
			return path;
		}
		if (dirname(each) === each) {
			return undefined;
		}
	}
}

/**
 * Runs a tool of the project in its folder. Tools that it starts itself are found where it was found.
 *
 * @param signal kills it.
 */
export function runTool(
	program: string,
	args: readonly string[],
	folder: string,
	signal: AbortSignal,
): Promise<ToolResult> {
	return new Promise((resolve) => {
		const child = spawn(program, args, {
			cwd: folder,
			env: {
				...process.env,
				PATH: `${dirname(program)}${delimiter}${process.env.PATH ?? ""}`,
			},
			shell: process.platform === "win32",
			signal,
			killSignal: "SIGKILL",
			stdio: ["ignore", "pipe", "pipe"],
		});
		let output = "";
		for (const stream of [child.stdout, child.stderr]) {
			stream.setEncoding("utf8").on("data", (text: string) => {
				output += text;
			});
		}
		// It could not be started, or was killed.
		child.once("error", (error) => {
			if (!signal.aborted) {
				output += error.message;
			}
			resolve({ code: signal.aborted ? undefined : 1, output });
		});
		child.once("close", (code) => resolve({ code: code ?? undefined, output }));
	});
}
