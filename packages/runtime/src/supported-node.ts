/** The oldest major version of Node.js that Plinth runs on, as in `engines` of each package.json. */
const oldestMajor = 24;

/**
 * Whether this Node.js is recent enough. If it is not, prints a sentence that says so and sets exit code 1.
 *
 * An older Node.js can't load most modules. So a program imports this one alone, and the others with `import()`
 * when it has returned true. For the same reason this file has no imports.
 *
 * @param program - the name of the program, for the sentence.
 */
export function isNodeSupported(program: string): boolean {
	const { node } = process.versions;
	if (Number.parseInt(node, 10) >= oldestMajor) {
		return true;
	}
	console.error(
		`${program} needs Node.js ${oldestMajor} or later; this is ${node}. Install a newer one from https://nodejs.org`,
	);
	process.exitCode = 1;
	return false;
}
