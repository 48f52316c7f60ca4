import { createHash, timingSafeEqual } from "node:crypto";
import { FileError } from "../configuration/located-yaml.ts";

/** The length of the shortest credential that is accepted: a shorter one could be guessed. */
const shortest = 16;

/**
 * Credentials that both sides of a connection know, as they are in their file now. All are accepted and the first is sent, so
 * that they can be replaced while both sides run: add the new one on the accepting side, send it, remove the old one.
 */
export class SharedSecrets {
	#all: readonly string[] = [];
	#hashes: readonly Buffer[] = [];

	/**
	 * Replaces the credentials by those in the file, one per line.
	 *
	 * @throws FileError if there is none, or one is too short.
	 */
	replace(file: string, text: string): void {
		const all = text
			.split("\n")
			.map((line) => line.trim())
			.filter((line) => line !== "");
		if (all.length === 0 || all.some((each) => each.length < shortest)) {
			throw new FileError(
				`${file} must contain a credential of at least ${shortest} characters per line: plinth-server new-token prints one after the word token`,
			);
		}
		this.#all = all;
		this.#hashes = all.map(hash);
	}

	/** The credential to send. */
	get first(): string {
		return this.#all[0] ?? "";
	}

	/** Whether a credential is one of them. Takes as long for each text of the same length. */
	accepts(credential: string): boolean {
		const sent = hash(credential);
		return this.#hashes.some((each) => timingSafeEqual(each, sent));
	}
}

function hash(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}
