import { isEnveloped } from "../call/envelopes.ts";
import type { InboundCall } from "../inbound-call.ts";
import { skipValue, stringAt, visitMembers } from "../messages/json-members.ts";
import { visitFields } from "../messages/protobuf-fields.ts";

/** The number of the field, as in resource_service.proto. */
const pageToken = 101;

const prefixBytes = 5;

/**
 * The part of the page token in a request of List that is the same for all pages of one list; `undefined` if the request has no
 * token, or can't be read.
 */
export function pageKeyOf(
	call: Pick<InboundCall, "method" | "target" | "header">,
	body: Uint8Array,
): string | undefined {
	try {
		const contentType = call.header("content-type") ?? "";
		const token =
			call.method === "GET" ? tokenOfQuery(call.target) : tokenOfBody(contentType, body);
		const end = token.indexOf(".");
		return end > 0 ? token.slice(0, end) : undefined;
	} catch {
		// The server says what is wrong with it.
		return undefined;
	}
}

function tokenOfBody(contentType: string, body: Uint8Array): string {
	// A compressed message is not one of the format, and is not read.
	const message = isEnveloped(contentType) ? body.subarray(prefixBytes) : body;
	return /json/.test(contentType) ? tokenOfJson(message) : tokenOfProtobuf(message);
}

function tokenOfQuery(target: string): string {
	const query = new URLSearchParams(target.slice(target.indexOf("?")));
	const text = query.get("message") ?? "";
	const message = Buffer.from(text, query.get("base64") === "1" ? "base64url" : "utf8");
	return query.get("encoding") === "json" ? tokenOfJson(message) : tokenOfProtobuf(message);
}

function tokenOfProtobuf(message: Uint8Array): string {
	let token = "";
	visitFields(message, 0, message.length, (number, start, end) => {
		if (number === pageToken) {
			token = Buffer.from(message.subarray(start, end)).toString("utf8");
		}
	});
	return token;
}

function tokenOfJson(message: Uint8Array): string {
	let token = "";
	visitMembers(message, 0, (name, start) => {
		if (name !== "pageToken" && name !== "page_token") {
			return skipValue(message, start);
		}
		const { value, end } = stringAt(message, start);
		token = value;
		return end;
	});
	return token;
}
