import { type Command, InvalidArgumentError, Option } from "commander";
import type { ExitCode } from "../exit-codes.ts";
import { outputFormats, type ResourceFormat } from "../output/output-format.ts";
import type { Session } from "../session.ts";

/** Runs a command in a session, and closes the session. The command returns the exit code. */
export type Runner = (
	work: (session: Session) => Promise<ExitCode>,
	options?: RunnerOptions,
) => Promise<void>;

/** How a command runs. */
export interface RunnerOptions {
	/**
	 * Whether the command goes on if its output can't be written, as in `plinth apply … | head -1`. A command that changes
	 * something should: otherwise it would end with half of its changes made.
	 */
	readonly finishesUnread?: boolean;
}

/**
 * Adds one command to the program. All commands are added at every start, so what a command needs to run should be
 * imported only when it runs.
 */
export type AddCommand = (program: Command, run: Runner) => void;

/** `-o` of the commands that print resources. */
export function outputOption(formats: readonly ResourceFormat[] = outputFormats): Option {
	return new Option("-o, --output <format>", "output format").choices(formats).default("table");
}

/** `-A` of the commands that list resources. */
export function allNamespacesOption(): Option {
	return new Option("-A, --all-namespaces", "include all partitions and namespaces");
}

/** `--region` of the commands that read resources. */
export function regionOption(description = "read copies of the resources of this region"): Option {
	return new Option("--region <region>", description);
}

/** `--region` of the commands that print lists. */
export function regionsOption(): Option {
	return regionOption(
		'print copies of the resources of this region, or "*" for all regions with this one',
	);
}

/** `--limit`, from 1 to `max`. */
export function limitOption(description: string, defaultLimit: number, max: number): Option {
	return new Option("--limit <number>", description).default(defaultLimit).argParser((text) => {
		const limit = Number(text);
		if (!(Number.isInteger(limit) && limit >= 1 && limit <= max)) {
			throw new InvalidArgumentError(`must be a whole number from 1 to ${max}`);
		}
		return limit;
	});
}

/** The words of `TYPE [NAME]`. */
export function wordsOf(type: string, name: string | undefined): readonly string[] {
	return name === undefined ? [type] : [type, name];
}

/** `--dry-run=server`. */
export function dryRunOption(): Option {
	return new Option(
		"--dry-run <where>",
		"check the request on the server without storing anything",
	).choices(["server"]);
}
