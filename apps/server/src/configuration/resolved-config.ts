import { type AnySetting, BadValue, type Setting } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What one source says about one setting. */
export interface ResolvedValue {
	/** The setting as the source names it, with its place: `--listen`, `plinth.yaml:3: listen`. */
	readonly name: string;
	/** The values as they were written; one, unless the setting is a list. */
	readonly texts: readonly string[];
}

/** What one source says about settings. */
export type Source = ReadonlyMap<AnySetting, ResolvedValue>;

/** What is configured: for each setting what the first source says that has it. */
export class ResolvedConfig {
	readonly #sources: readonly Source[];

	/** @param sources in the order in which they are asked. */
	constructor(sources: readonly Source[]) {
		this.#sources = sources;
	}

	/**
	 * The value of a setting, or `undefined` where nothing gives it.
	 *
	 * @throws UsageError that names the setting and its place.
	 */
	get<Value>(setting: Setting<Value>): Value | undefined {
		return this.all(setting).at(-1);
	}

	/** The values of a list. */
	all<Value>(setting: Setting<Value>): readonly Value[] {
		const value = this.#find(setting);
		return value?.texts.map((text) => parsed(setting, value.name, text)) ?? [];
	}

	/** Whether anything gives the setting. */
	has(setting: AnySetting): boolean {
		return this.#find(setting) !== undefined;
	}

	/** How whoever gave the setting names it; where nobody did, as a flag. */
	nameOf(setting: AnySetting): string {
		return this.#find(setting)?.name ?? `--${setting.flag}`;
	}

	/** Reads all values, so that the first bad one is found. */
	check(): void {
		for (const setting of allSettings) {
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
