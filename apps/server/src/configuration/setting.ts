/** A value is not valid for its setting. The message completes `<name> "<value>" …`. */
export class BadValue extends Error {
	override readonly name = "BadValue";
}

/** The names of a setting in the three sources. */
export interface SettingNames {
	/** Its key in a configuration file, such as `etcd.caFile`. The other names are derived from it. */
	readonly path: string;
	/** Such as `etcd-ca-file`, without the leading hyphens. */
	readonly flag: string;
	/** Such as `PLINTH_ETCD_CA_FILE`. */
	readonly variable: string;
}

/** One setting, whichever source its value comes from. */
export interface Setting<Value> extends SettingNames {
	/** A list is a repeated flag, values separated by commas, or a list in the file. */
	readonly kind: "one" | "list" | "switch";
	/** The form of a value in the help text, such as `<host:port>`. */
	readonly placeholder: string;
	/** Its purpose, in one line. */
	readonly description: string;
	/** The default as the help text shows it. */
	readonly defaultText: string;
	/** @throws BadValue. */
	parse(text: string): Value;
}

/** A setting with a value of any type. */
export type AnySetting = Setting<unknown>;

/** The parts of a setting that can't be derived. */
interface SettingParts<Value> {
	readonly placeholder: string;
	readonly description: string;
	readonly defaultText?: string;
	/** Only if it differs from the path. */
	readonly flag?: string;
	readonly parse: (text: string) => Value;
}

function setting<Value>(
	kind: Setting<Value>["kind"],
	path: string,
	{ flag, defaultText = "", placeholder, description, parse }: SettingParts<Value>,
): Setting<Value> {
	const names = namesOf(path);
	return { ...names, flag: flag ?? names.flag, kind, placeholder, description, defaultText, parse };
}

/** The names that are derived from a path. */
export function namesOf(path: string): SettingNames {
	const flag = path.replaceAll(".", "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
	return { path, flag, variable: `PLINTH_${flag.replaceAll("-", "_").toUpperCase()}` };
}

/** A setting with one value. */
export function one<Value>(path: string, parts: SettingParts<Value>): Setting<Value> {
	return setting("one", path, parts);
}

/** A setting with any number of values. `parse` reads one of them. */
export function list<Value>(path: string, parts: SettingParts<Value>): Setting<Value> {
	return setting("list", path, parts);
}

/** A setting that is on or off: a flag without a value, `true` or `false` in other sources. */
export function toggle(path: string, description: string): Setting<boolean> {
	return setting("switch", path, { placeholder: "", description, parse: parseBoolean });
}

function parseBoolean(text: string): boolean {
	if (text !== "true" && text !== "false") {
		throw new BadValue("is neither true nor false");
	}
	return text === "true";
}
