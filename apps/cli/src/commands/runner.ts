import { type Command, Option } from "commander";
import type { ExitCode } from "../exit-codes.ts";
import { type OutputFormat, outputFormats } from "../output/print-resources.ts";
import type { Session } from "../session.ts";

/** Runs a command in a session, and closes the session. The command returns the exit code. */
export type Runner = (work: (session: Session) => Promise<ExitCode>) => Promise<void>;

/** Adds one command to the program. */
export type AddCommand = (program: Command, run: Runner) => void;

/** `-o` of the commands that print resources. */
export function outputOption(formats: readonly OutputFormat[] = outputFormats): Option {
	return new Option("-o, --output <format>", "output format").choices(formats).default("table");
}

/** `-A` of the commands that list resources. */
export function allNamespacesOption(): Option {
	return new Option("-A, --all-namespaces", "include all partitions and namespaces");
}

/** `--dry-run=server`. */
export function dryRunOption(): Option {
	return new Option(
		"--dry-run <where>",
		"check the request on the server without storing anything",
	).choices(["server"]);
}
