import { isMap, isScalar, isSeq, type Node } from "yaml";
import { didYouMean } from "./did-you-mean.ts";
import { type LocatedYaml, readYaml } from "./located-yaml.ts";
import type { ResolvedValue, Source } from "./resolved-config.ts";
import type { AnySetting } from "./setting.ts";
import { allSettings, settings } from "./settings.ts";

/**
 * Reads a configuration file:
 *
 * ```yaml
 * listen: 127.0.0.1:7575
 * etcd:
 *   endpoints: [http://127.0.0.1:2379]
 * ```
 *
 * @param accepted the settings of the command.
 * @throws FileError that names the key which is unknown or whose value is malformed, and its line.
 */
export function readConfigurationFile(
	file: string,
	accepted: readonly AnySetting[] = allSettings,
): Source {
	const inFiles = accepted.filter((setting) => setting !== settings.config);
	const yaml = readYaml(file);
	const source = new Map<AnySetting, ResolvedValue>();
	const { contents } = yaml.document;
	if (contents !== null) {
		readSection(yaml, contents, [], { inFiles, source });
	}
	return source;
}

/** The settings that a file may have, and the values that were read so far. */
interface Reading {
	readonly inFiles: readonly AnySetting[];
	readonly source: Map<AnySetting, ResolvedValue>;
}

function readSection(
	yaml: LocatedYaml,
	node: Node,
	path: readonly string[],
	reading: Reading,
): void {
	const { inFiles, source } = reading;
	if (!isMap(node)) {
		const what = path.length === 0 ? "the configuration" : path.join(".");
		throw yaml.errorAt(path, `${what} must be keys with values, such as listen: 127.0.0.1:7575`);
	}
	for (const { key, value } of node.items) {
		const here = [...path, isScalar(key) ? String(key.value) : String(key)];
		const name = here.join(".");
		const setting = inFiles.find((each) => each.path === name);
		if (setting !== undefined) {
			const texts = textsOf(yaml, setting, value, here);
			source.set(setting, { name: `${yaml.placeOf(here)}: ${name}`, texts });
		} else if (inFiles.some((each) => each.path.startsWith(`${name}.`))) {
			if (isMap(value)) {
				readSection(yaml, value, here, reading);
			} else {
				throw yaml.errorAt(here, `${name} is a section: write its keys indented under it`);
			}
		} else {
			const meant = didYouMean("path", name, inFiles);
			const advice =
				meant === undefined ? `known keys are ${knownIn(inFiles, path)}` : `did you mean ${meant}?`;
			throw yaml.errorAt(here, `unknown key ${name}: ${advice}`);
		}
	}
}

function textsOf(
	yaml: LocatedYaml,
	setting: AnySetting,
	value: unknown,
	path: readonly string[],
): readonly string[] {
	if (setting.kind === "list" && isSeq(value)) {
		return value.items.map((item, index) => textOf(yaml, item, [...path, String(index)], ""));
	}
	return [textOf(yaml, value, path, formOf(setting))];
}

/** The values of a setting, for messages: `: sqlite, memory or etcd`, or `, <host:port>`. */
function formOf({ placeholder }: AnySetting): string {
	if (placeholder === "") {
		return "";
	}
	const [last = "", ...others] = placeholder.split("|").reverse();
	return others.length === 0 ? `, ${last}` : `: ${others.reverse().join(", ")} or ${last}`;
}

/** A value as written, so that `2e3` and `0644` mean the same as on a flag. */
function textOf(yaml: LocatedYaml, value: unknown, path: readonly string[], form: string): string {
	if (!isScalar(value) || value.value === null) {
		throw yaml.errorAt(path, `${path.join(".")} needs a single value${form}`);
	}
	return typeof value.value === "string" ? value.value : (value.source ?? String(value.value));
}

function knownIn(inFiles: readonly AnySetting[], path: readonly string[]): string {
	const depth = path.length;
	const names = inFiles
		.map((setting) => setting.path.split("."))
		.filter((each) => path.every((part, index) => each[index] === part))
		.map((each) => each[depth]);
	return [...new Set(names)].join(", ");
}
