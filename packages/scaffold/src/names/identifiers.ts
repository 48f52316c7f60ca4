/** Words that can't be the names of variables in a module. */
const keywords = [
	...["arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger"],
	...["default", "delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally"],
	...["for", "function", "if", "implements", "import", "in", "instanceof", "interface", "let"],
	...["new", "null", "package", "private", "protected", "public", "return", "static", "super"],
	...["switch", "this", "throw", "true", "try", "typeof", "undefined", "using", "var", "void"],
	...["while", "with", "yield"],
];

/** The identifiers of a generated file: each is used for one thing. */
export class Identifiers {
	readonly #taken: Set<string>;

	/** @param taken - those that the text of the file uses anyway. */
	constructor(taken: Iterable<string>) {
		this.#taken = new Set([...keywords, ...taken]);
	}

	/** Takes a name: the wanted one, or one that begins with it if that is taken. */
	take(wanted: string): string {
		const candidates = [wanted, `${wanted}Resource`];
		let found = candidates.find((each) => !this.#taken.has(each));
		for (let number = 2; found === undefined; number++) {
			const numbered = `${wanted}Resource${number}`;
			found = this.#taken.has(numbered) ? undefined : numbered;
		}
		this.#taken.add(found);
		return found;
	}

	/** Whether it can't be taken as it is. */
	has(name: string): boolean {
		return this.#taken.has(name);
	}
}
