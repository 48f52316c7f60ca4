import { parseArgs } from "node:util";
import { didYouMean, nearest } from "./did-you-mean.ts";
import type { ResolvedValue, Source } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** The values of flags, and whether `--help` is among them. */
export interface Flags {
	readonly help: boolean;
	readonly source: Source;
}

/** The words that `plinth-server` accepts before any flags. */
const commands = ["new-token", "backup", "restore", "etcd-restored", "version", "agent"] as const;

function optionsOf(accepted: readonly AnySetting[]) {
	return Object.fromEntries([
		...accepted.map(({ flag, kind }) => [
			flag,
			kind === "switch"
				? { type: "boolean" as const }
				: { type: "string" as const, multiple: true },
		]),
		["help", { type: "boolean" as const }],
	]);
}

/**
 * Reads flags.
 *
 * @param accepted the settings of the command.
 * @throws UsageError that names the argument which is unknown, is repeated or lacks a value.
 */
export function readFlags(
	args: readonly string[],
	accepted: readonly AnySetting[] = allSettings,
): Flags {
	const byFlag = new Map(accepted.map((setting) => [setting.flag, setting]));
	const options = optionsOf(accepted);
	// Not strict: the messages of parseArgs do not say what to do.
	const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
	const source = new Map<AnySetting, ResolvedValue>();
	let help = false;
	for (const token of tokens) {
		if (token.kind === "option-terminator") {
			continue;
		}
		if (token.kind === "positional") {
			throw new UsageError(unexpectedArgument(token.value, token.index));
		}
		const { name, rawName, value } = token;
		const setting = byFlag.get(name);
		if (setting === undefined && name !== "help") {
			throw new UsageError(`unknown flag ${rawName}: ${advice(name, accepted)}`);
		}
		if (setting === undefined || setting.kind === "switch") {
			if (value !== undefined) {
				throw new UsageError(`${rawName} takes no value, got ${JSON.stringify(value)}`);
			}
			if (setting === undefined) {
				help = true;
			} else {
				source.set(setting, { name: rawName, texts: ["true"] });
			}
			continue;
		}
		const text = requiredValue(token);
		const previous = source.get(setting)?.texts ?? [];
		if (previous.length > 0 && setting.kind === "one") {
			throw new UsageError(`${rawName} is set twice: set it once`);
		}
		const texts = setting.kind === "list" ? text.split(",") : [text];
		source.set(setting, { name: rawName, texts: [...previous, ...texts] });
	}
	return { help, source };
}

/** The value of a flag that needs one. */
function requiredValue({ rawName, value, inlineValue }: FlagToken): string {
	if (value === undefined || value === "") {
		throw new UsageError(`${rawName} needs a value, see --help`);
	}
	if (!inlineValue && value.startsWith("-")) {
		throw new UsageError(
			`${rawName} needs a value, got the flag ${value}; write a value that starts with a hyphen as ${rawName}=${value}`,
		);
	}
	return value;
}

interface FlagToken {
	readonly rawName: string;
	readonly value: string | undefined;
	readonly inlineValue: boolean | undefined;
}

function advice(flag: string, accepted: readonly AnySetting[]): string {
	const meant = didYouMean("flag", flag, accepted);
	return meant === undefined ? "see --help for those that exist" : `did you mean --${meant}?`;
}

/** The first argument may have been meant as a command, and an argument without hyphens as a flag. */
function unexpectedArgument(argument: string, index: number): string {
	const command = index === 0 ? nearest(argument, commands) : undefined;
	if (command === argument) {
		return `${command} has unexpected arguments, see --help`;
	}
	if (command !== undefined) {
		return `unknown command ${argument}: did you mean ${command}?`;
	}
	return `unexpected argument ${JSON.stringify(argument)}: all other arguments are flags, see --help`;
}
