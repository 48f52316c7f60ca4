import leven from "leven";

/** The most similar known word, if any is similar. Ignores case, and differences between `-` and `_`. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
	const requested = plain(word);
	let best: { readonly word: string; readonly distance: number } | undefined;
	for (const candidate of known) {
		const distance = distanceOf(requested, plain(candidate));
		if (distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
			best = { word: candidate, distance };
		}
	}
	const limit = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
	return best !== undefined && best.distance <= limit ? best.word : undefined;
}

/** The edits between two words. Two swapped letters are one, also in short words. */
function distanceOf(a: string, b: string): number {
	const edits = leven(a, b);
	return edits === 2 && sorted(a) === sorted(b) ? 1 : edits;
}

const sorted = (word: string) => [...word].sort().join("");

/** A hint such as `; did you mean port_name?`, or the list of known words if none is similar. */
export function suggestion(word: string, known: Iterable<string>): string {
	const words = [...known];
	const near = nearest(word, words);
	if (near !== undefined) {
		return `; did you mean ${near}?`;
	}
	return words.length > 0 && words.length <= 12 ? `; known: ${words.join(", ")}` : "";
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[-_]/g, "");
