/** A value is not what its setting takes. The message completes `<name> "<value>" …`. */
export class BadValue extends Error {
	override readonly name = "BadValue";
}

/** One thing that can be configured, wherever its value comes from. */
export interface Setting<Value> {
	/** Where it stands in a configuration file, as `etcd.caFile`. The other names follow from it. */
	readonly path: string;
	/** As `etcd-ca-file`, without the hyphens in front. */
	readonly flag: string;
	/** As `PLINTH_ETCD_CA_FILE`. */
	readonly variable: string;
	/** A list may be given several times, with commas between values, or as a list in the file. */
	readonly kind: "one" | "list" | "switch";
	/** What a value looks like, as `<host:port>`, for help. */
	readonly placeholder: string;
	/** What it is for, in one line. */
	readonly description: string;
	/** What holds where it is not given, for help. */
	readonly defaultText: string;
	/** @throws BadValue. */
	parse(text: string): Value;
}

/** What all settings have besides their values. */
export type AnySetting = Setting<unknown>;

/** The parts of a setting that can't be derived. */
interface SettingParts<Value> {
	readonly placeholder: string;
	readonly description: string;
	readonly defaultText?: string;
	/** Where it differs from the path. */
	readonly flag?: string;
	readonly parse: (text: string) => Value;
}

function setting<Value>(
	kind: Setting<Value>["kind"],
	path: string,
	{ flag = flagOf(path), defaultText = "", placeholder, description, parse }: SettingParts<Value>,
): Setting<Value> {
	const variable = `PLINTH_${flagOf(path).replaceAll("-", "_").toUpperCase()}`;
	return { path, flag, variable, kind, placeholder, description, defaultText, parse };
}

/** A setting with one value. */
export function one<Value>(path: string, parts: SettingParts<Value>): Setting<Value> {
	return setting("one", path, parts);
}

/** A setting with any number of values. `parse` reads one of them. */
export function list<Value>(path: string, parts: SettingParts<Value>): Setting<Value> {
	return setting("list", path, parts);
}

/** A setting that is on or off: a flag without a value, `true` or `false` elsewhere. */
export function toggle(path: string, description: string): Setting<boolean> {
	return setting("switch", path, { placeholder: "", description, parse: truth });
}

function truth(text: string): boolean {
	if (text !== "true" && text !== "false") {
		throw new BadValue("is neither true nor false");
	}
	return text === "true";
}

/** `etcd.caFile` as `etcd-ca-file`. */
function flagOf(path: string): string {
	return path.replaceAll(".", "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
