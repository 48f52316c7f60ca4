import type { IncomingHttpHeaders } from "node:http";
import type { IncomingHttpHeaders as Http2Headers } from "node:http2";

/** Headers of a request, as Node's implementations of HTTP parse them. */
export type NodeHeaders = IncomingHttpHeaders | Http2Headers;

/** The value of a header; values of repeated headers are joined by commas. */
export function headerOf(headers: NodeHeaders, name: string): string | undefined {
	const value = headers[name];
	return Array.isArray(value) ? value.join(", ") : value;
}

/** All headers, without the pseudo-headers of HTTP/2. */
export function* entriesOf(headers: NodeHeaders): Generator<readonly [string, string], undefined> {
	for (const [name, value] of Object.entries(headers)) {
		if (!name.startsWith(":") && value !== undefined) {
			yield [name, Array.isArray(value) ? value.join(", ") : value];
		}
	}
}

/**
 * Whether a request names one host at most. Several Host headers are malformed (RFC 9112, section 3.2), and so is an
 * `:authority` that differs from Host (RFC 9113, section 8.3.1): a proxy might use the other one.
 *
 * @param rawHeaders - only these contain repeated headers separately.
 */
export function namesOneHost(rawHeaders: readonly string[]): boolean {
	let host: string | undefined;
	let authority: string | undefined;
	for (let index = 0; index < rawHeaders.length; index += 2) {
		const name = rawHeaders[index];
		if (name?.length === 4 && name.toLowerCase() === "host") {
			if (host !== undefined) {
				return false;
			}
			host = rawHeaders[index + 1];
		} else if (name === ":authority") {
			authority = rawHeaders[index + 1];
		}
	}
	return (
		host === undefined || authority === undefined || host.toLowerCase() === authority.toLowerCase()
	);
}
