import { ScaffoldError } from "../scaffold-error.ts";
import { kebabCase, pascalCase } from "./words.ts";

/** The limit on the length of a name: files are named after it. */
const maxLength = 60;

/** Names that generated TypeScript uses for something else. */
const reserved: ReadonlySet<string> = new Set(["Object", "Partial", "Uint8Array"]);

/**
 * Checks the name of a new type or controller.
 *
 * @param what - `type` or `controller`.
 * @throws ScaffoldError that says why it can't be one.
 */
export function checkName(what: string, name: string): void {
	const refuse = (why: string) => {
		throw new ScaffoldError(`"${name}" can't be the name of a ${what}: ${why}`);
	};
	if (!/^[A-Z][A-Za-z\d]+$/.test(name)) {
		const meant = pascalCase(name);
		const example = /^[A-Z][A-Za-z\d]+$/.test(meant) ? meant : "Zone";
		refuse(`it must be in PascalCase, of at least two letters or digits, as in ${example}`);
	}
	if (name.length > maxLength) {
		refuse(`it is longer than ${maxLength} characters`);
	}
	if (reserved.has(name)) {
		refuse("generated TypeScript uses that name");
	}
	if (name.endsWith("Schema")) {
		refuse("names that end with Schema are those of generated descriptors");
	}
	if (/-(test|spec)$/.test(kebabCase(name))) {
		refuse("its file would be taken for a test");
	}
}
