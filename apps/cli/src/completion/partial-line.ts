import type { Command, Option } from "commander";

/** A partially typed command line, up to the word to complete. */
export interface PartialLine {
	readonly command: Command;
	/** The arguments before the word. */
	readonly operands: readonly string[];
	/** The word so far; it may be empty. */
	readonly word: string;
	/** The option whose value the word is. */
	readonly optionOfWord: Option | undefined;
	/** Values of the options of the program itself, by attribute. */
	readonly globalFlags: Readonly<Record<string, string>>;
}

/** Parses the words after the program's name. The last one is the word to complete. */
export function readPartialLine(program: Command, words: readonly string[]): PartialLine {
	// Some shells split words at `=` and pass it as a separate word.
	const typed = words.slice(0, -1).filter((word) => word !== "=");
	const last = words.at(-1) ?? "";
	let command = program;
	let pending: Option | undefined;
	const operands: string[] = [];
	const globalFlags: Record<string, string> = {};
	const take = (option: Option, value: string) => {
		if (program.options.includes(option)) {
			globalFlags[option.attributeName()] = value;
		}
	};
	for (const word of typed) {
		const [name = "", value] = word.split(/=(.*)/s);
		const option = word.startsWith("-")
			? optionsOf(command).find(({ short, long }) => short === name || long === name)
			: undefined;
		const next = command.commands.find((one) => one.name() === word);
		if (pending !== undefined && mayBeValue(word, pending)) {
			take(pending, word);
			pending = pending.variadic ? pending : undefined;
		} else if (option !== undefined) {
			if (value !== undefined) {
				take(option, value);
			}
			pending = value === undefined && takesValue(option) ? option : undefined;
		} else if (next !== undefined && operands.length === 0) {
			command = next;
		} else if (!word.startsWith("-")) {
			operands.push(word);
		}
	}
	return {
		command,
		operands,
		word: last === "=" ? "" : last,
		optionOfWord: pending,
		globalFlags,
	};
}

/** The options of the command and of the program. */
export function optionsOf(command: Command): readonly Option[] {
	const { parent } = command;
	return parent === null ? command.options : [...command.options, ...optionsOf(parent)];
}

/** Whether a word after an option is a value of it. One that takes several values ends at the next option. */
export function mayBeValue(word: string, { variadic }: Option): boolean {
	return !(variadic && word.startsWith("-"));
}

function takesValue({ required, optional }: Option): boolean {
	return required || optional;
}
