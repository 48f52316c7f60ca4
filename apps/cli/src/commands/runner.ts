import { type Command, Option } from "commander";
import type { ExitCode } from "../exit-codes.ts";
import { type OutputFormat, outputFormats } from "../output/print-resources.ts";
import type { Session } from "../session.ts";

/** Runs the work of a command in a session, which it closes. The work's answer is the exit code. */
export type Runner = (work: (session: Session) => Promise<ExitCode>) => Promise<void>;

/** Adds one command to the program. */
export type AddCommand = (program: Command, run: Runner) => void;

/** `-o` of the commands that print resources. */
export function outputOption(formats: readonly OutputFormat[] = outputFormats): Option {
	return new Option("-o, --output <format>", "how to print it").choices(formats).default("table");
}

/** `-A`, for lists. */
export function allNamespacesOption(): Option {
	return new Option("-A, --all-namespaces", "look into all partitions and namespaces");
}

/** `--dry-run=server`. */
export function dryRunOption(): Option {
	return new Option("--dry-run <where>", "let the server check it, and change nothing").choices([
		"server",
	]);
}
