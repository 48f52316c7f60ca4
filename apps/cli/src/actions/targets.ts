import type { KnownType, KnownTypes } from "@plinth/documents";
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
		return [{ type: types.find(first), names }];
	}
	const byType = new Map<KnownType, string[]>();
	for (const word of words) {
		const [type, name, ...more] = word.split("/");
		if (!type || !name || more.length > 0) {
			throw usageFailure(`${word} is not a resource: write TYPE/NAME`);
		}
		const known = types.find(type);
		byType.set(known, [...(byType.get(known) ?? []), name]);
	}
	return [...byType].map(([type, ofType]) => ({ type, names: ofType }));
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
