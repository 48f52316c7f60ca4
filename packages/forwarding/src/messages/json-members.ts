import { MalformedMessage } from "./protobuf-fields.ts";

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Calls `visit` with each member of a JSON object. It gets the name as it is written, and where the value begins; it
 * returns where the value ends, for which `skipValue` can be used.
 *
 * @returns the position after the object.
 * @throws MalformedMessage if there is no object.
 */
export function visitMembers(
	bytes: Uint8Array,
	start: number,
	visit: (name: string, valueStart: number) => number,
): number {
	let position = skipSpace(bytes, start);
	expect(bytes, position, openBrace);
	position = skipSpace(bytes, position + 1);
	if (bytes[position] === closeBrace) {
		return position + 1;
	}
	for (;;) {
		expect(bytes, position, quote);
		const nameEnd = skipString(bytes, position);
		const name = text(bytes, position + 1, nameEnd - 1);
		position = skipSpace(bytes, nameEnd);
		expect(bytes, position, colon);
		position = visit(name, skipSpace(bytes, position + 1));
		position = skipSpace(bytes, position);
		if (bytes[position] === closeBrace) {
			return position + 1;
		}
		expect(bytes, position, comma);
		position = skipSpace(bytes, position + 1);
	}
}

/** As `visitMembers`, for the elements of an array. */
function visitElements(
	bytes: Uint8Array,
	start: number,
	visit: (elementStart: number) => number,
): number {
	let position = skipSpace(bytes, start + 1);
	if (bytes[position] === closeBracket) {
		return position + 1;
	}
	for (;;) {
		position = skipSpace(bytes, visit(position));
		if (bytes[position] === closeBracket) {
			return position + 1;
		}
		expect(bytes, position, comma);
		position = skipSpace(bytes, position + 1);
	}
}

/** The position after a value, which may be of any kind. What is inside is not checked. @throws MalformedMessage */
export function skipValue(bytes: Uint8Array, start: number): number {
	let depth = 0;
	let position = start;
	while (position < bytes.length) {
		switch (bytes[position]) {
			case quote:
				position = skipString(bytes, position);
				if (depth === 0) {
					return position;
				}
				continue;
			case openBrace:
			case openBracket:
				depth += 1;
				break;
			case closeBrace:
			case closeBracket:
				if (depth === 0) {
					return position;
				}
				depth -= 1;
				if (depth === 0) {
					return position + 1;
				}
				break;
			case comma:
				if (depth === 0) {
					return position;
				}
				break;
		}
		position += 1;
	}
	throw new MalformedMessage("a value is cut off");
}

/**
 * Checks that no object has two members of one name, as servers do. Of a field, the names in camel case and as in its proto
 * are one.
 *
 * @returns the position after the value.
 * @throws MalformedMessage that names the member.
 */
export function checkUniqueMembers(bytes: Uint8Array, start = 0): number {
	const position = skipSpace(bytes, start);
	if (bytes[position] === openBrace) {
		const names = new Set<string>();
		return visitMembers(bytes, position, (written, valueStart) => {
			const name = String(JSON.parse(`"${written}"`)).replace(/_+(.)/g, (_, next) =>
				next.toUpperCase(),
			);
			if (names.has(name)) {
				throw new MalformedMessage(`${name} is given twice`);
			}
			names.add(name);
			return checkUniqueMembers(bytes, valueStart);
		});
	}
	return bytes[position] === openBracket
		? visitElements(bytes, position, (element) => checkUniqueMembers(bytes, element))
		: skipValue(bytes, position);
}

/** The string that begins there, with its escapes as they are written, and where it ends. @throws MalformedMessage */
export function stringAt(
	bytes: Uint8Array,
	start: number,
): { readonly value: string; readonly end: number } {
	expect(bytes, start, quote);
	const end = skipString(bytes, start);
	return { value: text(bytes, start + 1, end - 1), end };
}

function skipString(bytes: Uint8Array, start: number): number {
	let position = start + 1;
	for (;;) {
		position = bytes.indexOf(quote, position);
		if (position === -1) {
			throw new MalformedMessage("a string is cut off");
		}
		let backslashes = 0;
		while (bytes[position - 1 - backslashes] === backslash) {
			backslashes += 1;
		}
		position += 1;
		if (backslashes % 2 === 0) {
			return position;
		}
	}
}

function skipSpace(bytes: Uint8Array, start: number): number {
	let position = start;
	for (;;) {
		const byte = bytes[position];
		if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
			return position;
		}
		position += 1;
	}
}

function expect(bytes: Uint8Array, position: number, byte: number): void {
	if (bytes[position] !== byte) {
		throw new MalformedMessage(`no ${String.fromCharCode(byte)} at ${position}`);
	}
}

function text(bytes: Uint8Array, start: number, end: number): string {
	return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}
