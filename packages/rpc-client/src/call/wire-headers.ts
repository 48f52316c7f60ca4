import type { Fields } from "@plinth/http2";

/** Headers or trailers of a response. */
export function toHeaders(fields: Fields): Headers {
	const headers = new Headers();
	appendFields(headers, fields);
	return headers;
}

export function appendFields(headers: Headers, fields: Fields): void {
	for (let index = 0; index < fields.length; index += 2) {
		headers.append(fields[index] ?? "", fields[index + 1] ?? "");
	}
}
