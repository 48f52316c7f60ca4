import type { IncomingHttpHeaders } from "node:http2";

/** Headers or trailers of a response, without HTTP/2's pseudo-headers. */
export function toHeaders(fields: IncomingHttpHeaders): Headers {
	const headers = new Headers();
	appendFields(headers, fields);
	return headers;
}

export function appendFields(headers: Headers, fields: IncomingHttpHeaders): void {
	for (const [name, value] of Object.entries(fields)) {
		if (name.startsWith(":") || value === undefined) {
			continue;
		}
		for (const each of Array.isArray(value) ? value : [value]) {
			headers.append(name, each);
		}
	}
}

/** The value of a field; the first if there are several. */
export function fieldOf(fields: IncomingHttpHeaders, name: string): string | undefined {
	const value = fields[name];
	return Array.isArray(value) ? value[0] : value;
}
