import type { ServerTarget } from "@plinth/forwarding";
import { FileError } from "../../configuration/located-yaml.ts";
import { serverUrl } from "../../configuration/value-parsers.ts";
import { maxDiscovered } from "./discovery.ts";

/** A longer line is cut in errors. */
const shownCharacters = 100;

/**
 * Parses a file with one address per line, as in `--servers`. What follows a `#` is a comment.
 *
 * @throws FileError that names the line which is malformed, or that there are no addresses or too many.
 */
export function parseServerList(file: string, content: string): readonly ServerTarget[] {
	const addresses = new Set<string>();
	for (const [index, line] of content.split("\n").entries()) {
		const text = line.replace(/#.*/s, "").trim();
		if (text === "") {
			continue;
		}
		const url = serverUrl(text);
		if (url === undefined) {
			throw new FileError(
				`${file}:${index + 1}: ${JSON.stringify(text.slice(0, shownCharacters))} is not the address of a server: write one per line, such as a:7575 or https://a.example:7575`,
			);
		}
		addresses.add(url);
		if (addresses.size > maxDiscovered) {
			throw new FileError(
				`${file}:${index + 1}: there are more than ${maxDiscovered} servers: an agent forwards to at most ${maxDiscovered}`,
			);
		}
	}
	if (addresses.size === 0) {
		throw new FileError(`${file} has no addresses: write one per line, such as a:7575`);
	}
	return [...addresses].map((address) => ({ address }));
}
