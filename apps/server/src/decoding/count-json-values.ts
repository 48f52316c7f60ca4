const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const digit0 = 0x30;
const digit9 = 0x39;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** No number in a message has this many digits. */
const longestNumber = 1_024;

/**
 * Counts the values in JSON text, without parsing it, up to one more than `limit`: each member of an
 * object and each element of an array counts one.
 *
 * Two kinds of strings cost more to decode than their length suggests. A run of digits that is longer than any number
 * counts one per digit, because parsing it as a 64-bit integer takes more than linear time. With `fieldMasks`, a comma
 * counts one, because a field mask is a list of paths in one string.
 *
 * Scans any bytes in a single pass; nesting uses no memory.
 */
export function countJsonValues(bytes: Uint8Array, limit: number, fieldMasks: boolean): number {
	const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	const strings = new Strings(text);
	const { length } = text;
	let values = 0;
	// Whether an object or array was opened, and is empty so far.
	let opened = false;
	for (let at = 0; at < length && values <= limit; at += 1) {
		const byte = text[at] ?? 0;
		if (byte <= 0x20) {
			continue;
		}
		if (byte === closeBrace || byte === closeBracket) {
			opened = false;
			continue;
		}
		if (opened) {
			opened = false;
			values += 1;
		}
		if (byte === quote) {
			const start = at + 1;
			at = strings.endOf(start);
			if (at - start > longestNumber) {
				values += digitsOfLongRuns(text, start, at);
			}
			if (fieldMasks) {
				values += commasIn(text, start, at);
			}
		} else if (byte === comma) {
			values += 1;
		} else if (byte === openBrace || byte === openBracket) {
			opened = true;
		}
	}
	return Math.min(values, limit + 1);
}

/** The part of a string that is searched byte by byte; native search is faster after that. */
const shortString = 32;

/** Finds the ends of strings in linear time: no byte is searched twice for the same character. */
class Strings {
	readonly #text: Buffer;
	/** The next backslash after the last search. */
	#backslash = -1;

	constructor(text: Buffer) {
		this.#text = text;
	}

	/** The position of the closing quote, or the end of the text. */
	endOf(start: number): number {
		const text = this.#text;
		const { length } = text;
		let at = start;
		while (at < length && at < start + shortString) {
			const byte = text[at];
			if (byte === quote) {
				return at;
			}
			at += byte === backslash ? 2 : 1;
		}
		let end = -1;
		while (at < length) {
			if (end < at) {
				end = this.#find(quote, at);
			}
			if (this.#backslash < at) {
				this.#backslash = this.#find(backslash, at);
			}
			if (end < this.#backslash) {
				return end;
			}
			at = this.#backslash + 2;
		}
		return length;
	}

	#find(byte: number, from: number): number {
		const at = this.#text.indexOf(byte, from);
		return at < 0 ? this.#text.length : at;
	}
}

/** How many digits are in runs longer than any number. Such a run contains at least one of the checked positions. */
function digitsOfLongRuns(text: Buffer, start: number, end: number): number {
	let digits = 0;
	let at = start + longestNumber;
	while (at < end) {
		let first = at;
		let last = at;
		while (isDigit(text[last]) && last < end) {
			last += 1;
		}
		while (last > at && first > start && isDigit(text[first - 1])) {
			first -= 1;
		}
		if (last - first > longestNumber) {
			digits += last - first;
		}
		at = last + longestNumber;
	}
	return digits;
}

function commasIn(text: Buffer, start: number, end: number): number {
	let commas = 0;
	for (let at = start; at < end; at += 1) {
		commas += text[at] === comma ? 1 : 0;
	}
	return commas;
}

function isDigit(byte: number | undefined): boolean {
	return byte !== undefined && byte >= digit0 && byte <= digit9;
}
