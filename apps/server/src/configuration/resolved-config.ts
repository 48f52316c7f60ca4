import { type AnySetting, BadValue, type Setting } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** The value that one source has for a setting. */
export interface ResolvedValue {
	/** The setting as the source names it, with its location: `--listen`, `plinth.yaml:3:1: listen`. */
	readonly name: string;
	/** The values as written; one, unless the setting is a list. */
	readonly texts: readonly string[];
}

/** The values of one source. */
export type Source = ReadonlyMap<AnySetting, ResolvedValue>;

/** The configuration: each setting has the value of the first source that sets it. */
export class ResolvedConfig {
	readonly #sources: readonly Source[];
	readonly #accepted: readonly AnySetting[];

	/**
	 * @param sources in the order of precedence.
	 * @param accepted the settings of the command.
	 */
	constructor(sources: readonly Source[], accepted: readonly AnySetting[] = allSettings) {
		this.#sources = sources;
		this.#accepted = accepted;
	}

	/**
	 * The value of a setting, or `undefined` if no source sets it.
	 *
	 * @throws UsageError that names the setting and its location.
	 */
	get<Value>(setting: Setting<Value>): Value | undefined {
		return this.all(setting).at(-1);
	}

	/** The values of a list. */
	all<Value>(setting: Setting<Value>): readonly Value[] {
		const value = this.#find(setting);
		return value?.texts.map((text) => parsed(setting, value.name, text)) ?? [];
	}

	/** Whether a source sets it. */
	has(setting: AnySetting): boolean {
		return this.#find(setting) !== undefined;
	}

	/** The name of a setting in the source that sets it, or its flag if none does. */
	nameOf(setting: AnySetting): string {
		return this.#find(setting)?.name ?? `--${setting.flag}`;
	}

	/** Parses all values. @throws UsageError about the first that is not valid. */
	check(): void {
		for (const setting of this.#accepted) {
			this.all(setting);
		}
	}

	#find(setting: AnySetting): ResolvedValue | undefined {
		return this.#sources.find((source) => source.has(setting))?.get(setting);
	}
}

function parsed<Value>(setting: Setting<Value>, name: string, text: string): Value {
	if (text === "") {
		throw new UsageError(`${name} needs a value, see --help`);
	}
	try {
		return setting.parse(text);
	} catch (failure) {
		if (failure instanceof BadValue) {
			throw new UsageError(`${name} ${JSON.stringify(text)} ${failure.message}`);
		}
		throw failure;
	}
}
