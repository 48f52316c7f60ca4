import type { KnownType, KnownTypes } from "@plinth/documents";
import { quoted } from "@plinth/documents";
import { labelProblem } from "@plinth/resource";
import { usageFailure } from "../failure.ts";

/** Resources of one type, as named on the command line. */
export interface Target {
	readonly type: KnownType;
	/** Empty for all resources of the type. */
	readonly names: readonly string[];
}

/**
 * Parses `TYPE`, `TYPE NAME…` or `TYPE/NAME…`.
 *
 * @throws Failure if a type is unknown, or if both forms are mixed.
 */
export function parseTargets(words: readonly string[], types: KnownTypes): readonly Target[] {
	const [first = "", ...names] = words;
	if (!first.includes("/")) {
		const mixed = names.find((name) => name.includes("/"));
		if (mixed !== undefined) {
			throw usageFailure(`both ${first} and ${mixed} name a type: write TYPE NAME… or TYPE/NAME…`);
		}
		const type = types.find(first);
		for (const name of names) {
			checkName(name, type);
		}
		return [{ type, names }];
	}
	const byType = new Map<KnownType, string[]>();
	for (const word of words) {
		const [type, name, ...more] = word.split("/");
		if (!type || !name || more.length > 0) {
			throw usageFailure(`${word} is not a resource: write TYPE/NAME`);
		}
		const known = types.find(type);
		checkName(name, known);
		byType.set(known, [...(byType.get(known) ?? []), name]);
	}
	return [...byType].map(([type, ofType]) => ({ type, names: ofType }));
}

/** @throws Failure for a name that no resource has. */
function checkName(name: string, { key }: KnownType): void {
	const problem = name === "" ? "must not be empty" : labelProblem(name);
	if (problem !== undefined) {
		throw usageFailure(`${quoted(name)} is not the name of a ${key}: it ${problem}`);
	}
}

/** Like `parseTargets`, but requires names. */
export function parseNamedTargets(words: readonly string[], types: KnownTypes): readonly Target[] {
	const targets = parseTargets(words, types);
	if (targets.some(({ names }) => names.length === 0)) {
		throw usageFailure(`name at least one resource: ${words[0]} NAME…`);
	}
	return targets;
}

/** Parses exactly one resource. */
export function parseTarget(
	words: readonly string[],
	types: KnownTypes,
): { readonly type: KnownType; readonly name: string } {
	const [target, ...others] = parseTargets(words, types);
	const [name, ...names] = target?.names ?? [];
	if (target !== undefined && name === undefined) {
		throw usageFailure(`name the resource: ${words[0]} NAME`);
	}
	if (target === undefined || name === undefined || others.length > 0 || names.length > 0) {
		throw usageFailure("name exactly one resource: TYPE NAME or TYPE/NAME");
	}
	return { type: target.type, name };
}

/** Parses a type, or exactly one resource. */
export function parseTypeOrTarget(
	words: readonly string[],
	types: KnownTypes,
): { readonly type: KnownType; readonly name: string | undefined } {
	const isType = words.length === 1 && !words[0]?.includes("/");
	return isType ? { type: types.find(words[0] ?? ""), name: undefined } : parseTarget(words, types);
}
