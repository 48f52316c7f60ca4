/** Reads the summaries of runs that turbo writes with `--summarize`. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";

/** The parts of turbo's summary of a run that are used here. */
interface RunSummary {
	readonly tasks: readonly {
		/** Such as `@plinth/cli#test`. */
		readonly taskId: string;
		/** The folder of the package, relative to the root. */
		readonly directory: string;
		/** The file with what it printed, relative to the root. Absent if its result is never cached. */
		readonly logFile?: string;
		/** Absent if the result came from the cache. */
		readonly execution?: { readonly exitCode?: number | null } | null;
	}[];
}

/** A task that ran and did not exit with 0. */
export interface FailedTask {
	/** Such as `@plinth/cli#test`. */
	readonly name: string;
	/** The folder of the package, relative to the root. */
	readonly directory: string;
	/** Absent if it could not be started, or was killed. */
	readonly exitCode?: number;
	/** What it printed, without colors; empty if that is not known, as for a task that is never cached. */
	readonly output: string;
}

/** The folder of the summaries, relative to the root of a repository. */
export const summariesFolder = ".turbo/runs";

/** The tasks that failed, by the summaries in the repository with this root. */
export function readFailedTasks(root: string): readonly FailedTask[] {
	return globSync(`${summariesFolder}/*.json`, { cwd: root }).flatMap((file) => {
		const { tasks }: RunSummary = JSON.parse(readFileSync(join(root, file), "utf8"));
		return tasks.flatMap(({ taskId, directory, logFile, execution }) => {
			const exitCode = execution?.exitCode ?? undefined;
			if (!execution || exitCode === 0) {
				return [];
			}
			const output = logFile === undefined ? "" : readOutput(join(root, logFile));
			return [{ name: taskId, directory, output, ...(exitCode !== undefined && { exitCode }) }];
		});
	});
}

function readOutput(file: string): string {
	try {
		return stripVTControlCharacters(readFileSync(file, "utf8"));
	} catch {
		return "";
	}
}
