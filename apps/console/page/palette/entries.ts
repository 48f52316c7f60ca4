import type { KnownType, KnownTypes } from "@plinth/documents";

/** An entry of the palette. */
export interface PaletteEntry {
	readonly key: string;
	readonly title: string;
	/** What kind of entry it is. */
	readonly kind: string;
	/** Beside the title. */
	readonly detail?: string;
	readonly run: () => void;
}

/** So many entries are shown. */
export const mostEntries = 12;

/**
 * The entries whose titles contain all words of the text, the best first: those that begin with the text, then those with a
 * word that does, then the others.
 */
export function matchingEntries(
	entries: readonly PaletteEntry[],
	text: string,
): readonly PaletteEntry[] {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return entries
		.map((entry) => ({ entry, rank: rankOf(`${entry.title} ${entry.detail ?? ""}`, words) }))
		.filter(({ rank }) => rank !== undefined)
		.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0))
		.slice(0, mostEntries)
		.map(({ entry }) => entry);
}

function rankOf(title: string, words: readonly string[]): number | undefined {
	const lower = title.toLowerCase();
	if (!words.every((word) => lower.includes(word))) {
		return undefined;
	}
	const [first = ""] = words;
	return lower.startsWith(first)
		? 0
		: lower.split(/[^a-z0-9]/).some((each) => each.startsWith(first))
			? 1
			: 2;
}

/** Resources to search for: `workload web` denotes those of a type whose names begin with `web`. */
export interface ResourceSearchText {
	readonly type: KnownType;
	readonly namePrefix: string;
}

/** The search that a text denotes: the kind of a type, perhaps only its beginning, and then a part of a name. */
export function resourceSearchOf(
	types: Pick<KnownTypes, "all">,
	text: string,
): ResourceSearchText | undefined {
	const [kind = "", namePrefix = "", ...rest] = text.trim().toLowerCase().split(/\s+/);
	if (namePrefix === "" || rest.length > 0 || !/^[a-z0-9-]+$/.test(namePrefix)) {
		return undefined;
	}
	const matches = (test: (kind: string) => boolean) =>
		types.all.findLast(({ type }) => test(type.kind.toLowerCase()));
	const type = matches((each) => each === kind) ?? matches((each) => each.startsWith(kind));
	return type && { type, namePrefix };
}
