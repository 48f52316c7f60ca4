import leven from "leven";

/**
 * The known word that was probably meant, or `undefined` where none is near. Case, and `-` for `_`,
 * count as no difference.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
	const asked = plain(word);
	let best: { readonly word: string; readonly distance: number } | undefined;
	for (const candidate of known) {
		const distance = leven(asked, plain(candidate));
		if (distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
			best = { word: candidate, distance };
		}
	}
	// Two letters in the wrong order count as two.
	const limit = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
	return best !== undefined && best.distance <= limit ? best.word : undefined;
}

/** As `; did you mean port_name?`, or what there is where nothing is near. */
export function suggestion(word: string, known: Iterable<string>): string {
	const words = [...known];
	const near = nearest(word, words);
	if (near !== undefined) {
		return `; did you mean ${near}?`;
	}
	return words.length > 0 && words.length <= 12 ? `; there is: ${words.join(", ")}` : "";
}

const plain = (word: string) => word.toLowerCase().replaceAll(/[-_]/g, "");
