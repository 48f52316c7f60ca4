/** The words of a name in PascalCase, in lower case: `HTTPZone` is `http`, `zone`. */
function wordsOf(name: string): readonly string[] {
	return name
		.replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
		.replaceAll(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
		.toLowerCase()
		.split(" ");
}

/** `zone-planner` */
export function kebabCase(name: string): string {
	return wordsOf(name).join("-");
}

/** `zone_planner` */
export function snakeCase(name: string): string {
	return wordsOf(name).join("_");
}

/** `zonePlanner` */
export function camelCase(name: string): string {
	const [first = "", ...rest] = wordsOf(name);
	return first + rest.map(capitalized).join("");
}

/** The name in PascalCase that was probably meant, such as `ZonePlanner` for `zone-planner`. */
export function pascalCase(name: string): string {
	return name
		.split(/[^A-Za-z\d]+/)
		.map(capitalized)
		.join("")
		.replace(/^\d+/, "");
}

/** `zone planner`, in sentences. */
export function spoken(name: string): string {
	return wordsOf(name).join(" ");
}

/** `a zone`, `an album` */
export function withArticle(words: string): string {
	return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}

/** The regular plural of a word, or of the last of several. */
export function plural(words: string): string {
	if (/(s|x|z|ch|sh)$/i.test(words)) {
		return `${words}es`;
	}
	return /[^aeiou]y$/i.test(words) ? `${words.slice(0, -1)}ies` : `${words}s`;
}

/** With its first letter in upper case. */
export function capitalized(word: string): string {
	return word.slice(0, 1).toUpperCase() + word.slice(1);
}
