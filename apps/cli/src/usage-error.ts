import { nearest } from "@plinth/documents/suggest";
import type { Command } from "commander";

/**
 * Flags that kubectl and etcdctl call differently, with their names here. Flags that are renamed go here too.
 * Without the leading hyphens.
 */
const otherNames: ReadonlyMap<string, string> = new Map([
	["cacert", "ca-file"],
	["cert", "certificate-file"],
	["certificate-authority", "ca-file"],
	["client-certificate", "certificate-file"],
	["client-key", "key-file"],
	["endpoints", "server"],
	["file", "filename"],
	["key", "key-file"],
	["kubeconfig", "config"],
	["watch-only", "changes-only"],
]);

/** Commands of the `plinth` of a project, which its dependency `@plinth/plinth` adds. */
const commandsOfProjects: readonly string[] = ["dev", "generate"];

/** The message for an error that commander reports. `command` is the one that failed. */
export function explainUsage(text: string, command: Command): string {
	const [message = "", ...hints] = text
		.trimEnd()
		.replace(/^error: /, "")
		.split("\n");
	const [, flag] = /^unknown option '(.*)'$/.exec(message) ?? [];
	if (flag !== undefined) {
		return `plinth: unknown flag ${flag}${advice(flag, command)}\n`;
	}
	const [, name = ""] = /^unknown command '(.*)'$/.exec(message) ?? [];
	if (commandsOfProjects.includes(name)) {
		return `plinth: ${message}: it is a command of projects that depend on @plinth/plinth; run it in one, as npx plinth ${name} (npm create plinth@latest makes a project)\n`;
	}
	if (/^required option '-f, /.test(message) && command.args.length > 0) {
		return `plinth: ${renamed(message)}: did you mean -f ${command.args.join(" ")}?\n`;
	}
	const hint = hints.map((each) => each.replace(/^\(Did you mean (.*)\)$/, ": did you mean $1"));
	return `plinth: ${[renamed(message), ...hint].join("")}\n`;
}

/** A message of commander in the words of the other messages. */
function renamed(message: string): string {
	return message
		.replace(/^required option '(.*)' not specified$/, "missing required flag $1")
		.replace(/^option '(.*)' argument missing$/, "$1 needs a value")
		.replace(
			/^option '(.*)' argument '(.*)' is invalid\. Allowed choices are (.*)\.$/,
			'invalid value "$2" for $1: must be one of $3',
		)
		.replace(
			/^command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/,
			'invalid value "$1" for <$2>: must be one of $3',
		)
		.replace(/^option '(.*)' argument '(.*)' is invalid\. /, 'invalid value "$2" for $1: ')
		.replace(/^option /, "flag ")
		.replace(" cannot be used with option ", " can't be used with flag ");
}

function advice(flag: string, command: Command): string {
	if (!flag.startsWith("--")) {
		return "";
	}
	const [word = ""] = flag.slice(2).split("=");
	const known = longFlags(command);
	const other = otherNames.get(word);
	const found = other !== undefined && known.includes(other) ? other : nearest(word, known);
	if (found !== undefined) {
		return `: did you mean --${found}?`;
	}
	const others = siblings(command).filter((each) => ownFlags(each).includes(word));
	return others.length === 0
		? ""
		: `: it is a flag of ${others.map((each) => each.name()).join(", ")}`;
}

/** The long flags that a command accepts, its parents' included, without hyphens. */
function longFlags(command: Command): readonly string[] {
	return [...ownFlags(command), ...(command.parent === null ? [] : longFlags(command.parent))];
}

function ownFlags(command: Command): readonly string[] {
	const long = command.options.flatMap((option) => option.long?.slice(2) ?? []);
	return [...long, "help"];
}

function siblings(command: Command): readonly Command[] {
	const all = command.parent === null ? command.commands : command.parent.commands;
	return all.filter((each) => each !== command);
}
