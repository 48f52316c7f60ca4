import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import type { Fields } from "../inbound-call.ts";
import { passesOn } from "./hop-by-hop.ts";

/** The head of a response. */
export type ResponseHead = IncomingHttpHeaders & IncomingHttpStatusHeader;

/** The headers or trailers of a response as they are passed on. */
export function responseFields(headers: IncomingHttpHeaders): Fields {
	const passes = passesOn(undefined);
	const fields: Record<string, string> = {};
	for (const [name, value] of Object.entries(headers)) {
		if (value !== undefined && passes(name)) {
			fields[name] = Array.isArray(value) ? value.join(", ") : value;
		}
	}
	return fields;
}

/** Whether a server has refused a call as Unavailable, as far as the head of its response says so. */
export function isUnavailable(headers: IncomingHttpHeaders): boolean {
	return headers["grpc-status"] === "14" || String(headers[":status"]) === "503";
}
