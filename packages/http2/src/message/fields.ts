import type { Fields } from "../http2.ts";

/** The first value of a field; the name is lowercase. */
export function fieldValue(fields: Fields, name: string): string | undefined {
	for (let index = 0; index < fields.length; index += 2) {
		if (fields[index] === name) {
			return fields[index + 1];
		}
	}
	return undefined;
}

/** A token of RFC 9110, without uppercase letters. */
const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** No control characters, RFC 9110, section 5.5, and no white space at either end, RFC 9113, section 8.2.1. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is excluded.
const badValue = /[\0-\x08\x0a-\x1f\x7f]|^[ \t]|[ \t]$/;

/** Fields that concern a connection of HTTP/1.1, RFC 9113, section 8.2.2. */
const connectionFields = new Set([
	"connection",
	"keep-alive",
	"proxy-connection",
	"transfer-encoding",
	"upgrade",
]);

/** What is wrong with a field that is not a pseudo-header field; undefined if nothing is. */
export function problemOfField(name: string, value: string): string | undefined {
	if (!fieldName.test(name)) {
		return `field ${JSON.stringify(name)} has an invalid name`;
	}
	if (badValue.test(value)) {
		return `field ${name} has an invalid value`;
	}
	if (connectionFields.has(name)) {
		return `field ${name} is not allowed in HTTP/2`;
	}
	if (name === "te" && value.toLowerCase() !== "trailers") {
		return "field te has a value other than trailers";
	}
	return undefined;
}

/** What is wrong with trailers; undefined if nothing is. */
export function problemOfTrailers(fields: Fields): string | undefined {
	for (let index = 0; index < fields.length; index += 2) {
		const problem = problemOfField(fields[index] ?? "", fields[index + 1] ?? "");
		if (problem !== undefined) {
			return problem;
		}
	}
	return undefined;
}

/**
 * Checks what this side is about to send.
 *
 * @throws Error if it would be malformed.
 */
export function checkSentFields(fields: Fields): void {
	if (fields.length % 2 !== 0) {
		throw new Error("fields must be pairs of a name and a value");
	}
	const problem = problemOfTrailers(fields);
	if (problem !== undefined) {
		throw new Error(problem);
	}
	checkLatin1(fields);
}

/** @throws Error if a value has characters that no byte represents. */
export function checkLatin1(fields: Fields): void {
	for (let index = 1; index < fields.length; index += 2) {
		if (!/^[\0-\xff]*$/.test(fields[index] ?? "")) {
			throw new Error(`field ${fields[index - 1]} has characters beyond Latin-1`);
		}
	}
}

/** The value of `content-length` in bytes: -1 if there is none, undefined if it is not a number or repeated. */
export function contentLengthOf(fields: Fields): number | undefined {
	const text = fieldValue(fields, "content-length");
	if (text === undefined) {
		return -1;
	}
	return /^\d{1,15}$/.test(text) && countOf(fields, "content-length") === 1
		? Number(text)
		: undefined;
}

/** How many fields have a name. */
export function countOf(fields: Fields, name: string): number {
	let count = 0;
	for (let index = 0; index < fields.length; index += 2) {
		count += fields[index] === name ? 1 : 0;
	}
	return count;
}
