import type { Problem } from "../report/problem.ts";

/** The problems that a tool has printed, and the lines that are none. */
export interface ToolProblems {
	readonly problems: readonly Problem[];
	readonly others: readonly string[];
}

/** Reads what buf prints: `proto/site/v1/site.proto:4:1:syntax error: …`. */
export function bufProblems(output: string): ToolProblems {
	return problemsOf(output, /^(?<file>[^:\s][^:]*):(?<line>\d+):(?<column>\d+): ?(?<message>.+)$/);
}

/** Reads what tsc prints with `--pretty false`: `src/site.ts(4,1): error TS2322: …`. Indented lines continue. */
export function tscProblems(output: string): ToolProblems {
	return problemsOf(
		output,
		/^(?<file>\S.*?)\((?<line>\d+),(?<column>\d+)\): error (?<message>TS\d+: .+)$/,
	);
}

function problemsOf(output: string, pattern: RegExp): ToolProblems {
	const problems: Problem[] = [];
	const others: string[] = [];
	for (const line of output.split("\n").map((each) => each.trimEnd())) {
		const groups = pattern.exec(line)?.groups;
		const previous = problems.at(-1);
		if (groups !== undefined) {
			const { file = "", message = "" } = groups;
			const position = { line: Number(groups.line), column: Number(groups.column) };
			problems.push({ file, message, ...position });
		} else if (previous !== undefined && /^\s+\S/.test(line)) {
			problems[problems.length - 1] = { ...previous, message: `${previous.message}\n${line}` };
		} else if (line !== "") {
			others.push(line);
		}
	}
	return { problems, others };
}
