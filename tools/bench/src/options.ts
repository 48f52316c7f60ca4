import { resolve } from "node:path";

/** Whether this is a short run, which shows that a bench works and measures nothing. */
const isQuick = process.argv.includes("--quick");

/** The first value, or the second in a short run. */
export function unlessQuick<T>(full: T, quick: T): T {
	return isQuick ? quick : full;
}

/** The value of `--name=value`, if it was given. */
export function textOption(name: string): string | undefined {
	const prefix = `--${name}=`;
	return process.argv.find((each) => each.startsWith(prefix))?.slice(prefix.length);
}

/**
 * The path of a file in another checkout, if `--against` names one: a bench imports it to compare this checkout
 * with that one.
 *
 * @param path - from the root of the repository.
 */
export function otherCheckout(path: string): string | undefined {
	const root = textOption("against");
	return root === undefined ? undefined : resolve(root, path);
}

/** The number of `--name=number`, or else the first default, or the second one in a short run. */
export function numberOption(name: string, full: number, quick: number): number {
	const text = textOption(name);
	if (text === undefined) {
		return unlessQuick(full, quick);
	}
	const value = Number(text);
	if (!(value > 0)) {
		throw new Error(`--${name} must be a number above 0, got: "${text}"`);
	}
	return value;
}
