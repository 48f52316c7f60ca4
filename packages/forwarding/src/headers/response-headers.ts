import type { Fields as WireFields } from "@plinth/http2";
import type { Fields } from "../inbound-call.ts";
import { noFields } from "./fields.ts";
import { passesOn } from "./hop-by-hop.ts";

/** The head of a response: its headers, and `:status`. */
export type ResponseHead = Fields;

/** Headers of which only the first counts: joined with others they would have another meaning. */
const singleHeaders: ReadonlySet<string> = new Set([
	"content-length",
	"content-type",
	"date",
	"etag",
	"expires",
	"grpc-status",
	"last-modified",
	"location",
	"retry-after",
	"server",
]);

/** The head of a response as it was received. */
export function responseHead(status: number, fields: WireFields): ResponseHead {
	return { ":status": `${status}`, ...joinedFields(fields) };
}

/** Headers or trailers as they were received: values of repeated fields are joined by commas. */
export function joinedFields(fields: WireFields): Fields {
	const joined = noFields();
	for (let index = 0; index < fields.length; index += 2) {
		const name = fields[index] ?? "";
		const value = fields[index + 1] ?? "";
		const before = joined[name];
		if (before === undefined) {
			joined[name] = value;
		} else if (!singleHeaders.has(name)) {
			joined[name] = `${before}, ${value}`;
		}
	}
	return joined;
}

/** The headers or trailers of a response as they are passed on. */
export function responseFields(headers: Fields): Fields {
	const passes = passesOn(undefined);
	const fields = noFields();
	for (const [name, value] of Object.entries(headers)) {
		if (passes(name)) {
			fields[name] = value;
		}
	}
	return fields;
}

/** Whether a server has refused a call as Unavailable, as far as the head of its response says so. */
export function isUnavailable(headers: ResponseHead): boolean {
	return headers["grpc-status"] === "14" || headers[":status"] === "503";
}
