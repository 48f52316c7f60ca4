import { once } from "node:events";
import type { ClientHttp2Session, IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";

/** A response as a client of node:http2 receives it. */
export interface NodeResponse {
	readonly headers: IncomingHttpHeaders;
	readonly body: Buffer;
	readonly trailers: IncomingHttpHeaders;
}

/** Sends a request, and resolves with the whole response. */
export async function call(
	client: ClientHttp2Session,
	headers: OutgoingHttpHeaders,
	body?: Uint8Array,
): Promise<NodeResponse> {
	const stream = client.request(headers, { endStream: body === undefined });
	if (body !== undefined) {
		stream.end(body);
	}
	let trailers: IncomingHttpHeaders = {};
	stream.on("trailers", (received) => {
		trailers = received;
	});
	const chunks: Buffer[] = [];
	stream.on("data", (chunk: Buffer) => chunks.push(chunk));
	const [received] = await once(stream, "response");
	if (!stream.closed) {
		await once(stream, "close");
	}
	return { headers: received, body: Buffer.concat(chunks), trailers };
}
