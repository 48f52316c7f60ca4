import leven from "leven";

/** A hint such as `: did you mean Zone?`, or the list of known words if none is similar; empty if none is known. */
export function suggestion(word: string, known: Iterable<string>): string {
	const words = [...new Set(known)];
	const wanted = word.toLowerCase();
	const [best] = words
		.map((each) => ({ each, distance: leven(wanted, each.toLowerCase()) }))
		.sort((a, b) => a.distance - b.distance);
	const limit = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
	if (best !== undefined && best.distance <= limit) {
		return `: did you mean ${best.each}?`;
	}
	return words.length === 0 || words.length > 12 ? "" : `: there are ${words.join(", ")}`;
}
