import type { Fields } from "../http2.ts";
import { contentLengthOf, problemOfTrailers } from "./fields.ts";
import type { MalformedHead } from "./malformed-head.ts";

/** A header block that a server has sent: the head of a response, or its trailers. */
export interface ResponseBlock {
	/** 0 for trailers. */
	readonly status: number;
	/** All fields but the pseudo-header field. */
	readonly fields: Fields;
	/** The value of `content-length` in bytes; -1 if there is none. */
	readonly contentLength: number;
}

/** Reads the decoded fields of a block: RFC 9113, sections 8.1, 8.2 and 8.3.2. */
export function parseResponseBlock(decoded: Fields): ResponseBlock | MalformedHead {
	const isHead = decoded[0] === ":status";
	const text = isHead ? (decoded[1] ?? "") : "0";
	if (isHead && !/^[1-5]\d\d$/.test(text)) {
		return { problem: ":status is not a status" };
	}
	const fields = isHead ? decoded.slice(2) : decoded;
	// Further pseudo-header fields are among the names that are invalid.
	const problem = problemOfTrailers(fields);
	if (problem !== undefined) {
		return { problem };
	}
	const contentLength = contentLengthOf(fields);
	if (contentLength === undefined) {
		return { problem: "content-length is not a number, or is repeated" };
	}
	return { status: Number(text), fields, contentLength };
}
