import { once } from "node:events";
import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:net";

/** The response. */
export interface RawResponse {
	readonly status: number;
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

/** Sends lines as the head of an HTTP/1.1 request, and a body after it, byte for byte. */
export async function rawHttp1(
	address: string,
	lines: readonly string[],
	body = "",
): Promise<RawResponse> {
	const { hostname, port } = new URL(address);
	const socket = connect(Number(port), hostname);
	const length = body === "" ? [] : [`content-length: ${Buffer.byteLength(body)}`];
	socket.write([...lines, "connection: close", ...length, "", body].join("\r\n"));
	const chunks: Buffer[] = [];
	socket.on("data", (chunk: Buffer) => chunks.push(chunk));
	await once(socket, "close");
	const [head = "", ...rest] = Buffer.concat(chunks).toString("latin1").split("\r\n\r\n");
	const [statusLine = "", ...fields] = head.split("\r\n");
	return {
		status: Number(statusLine.split(" ")[1]),
		headers: Object.fromEntries(
			fields.map((field) => {
				const colon = field.indexOf(":");
				return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
			}),
		),
		body: rest.join("\r\n\r\n"),
	};
}

/** Sends an HTTP/2 request with these headers, including pseudo-headers. */
export async function rawHttp2(
	address: string,
	headers: OutgoingHttpHeaders,
	body = "",
): Promise<RawResponse> {
	const session = connectHttp2(address);
	session.on("error", () => {});
	try {
		const stream = session.request(headers);
		if (!stream.writableEnded) {
			stream.end(body);
		}
		const [received] = await once(stream, "response");
		const chunks: Buffer[] = [];
		stream.on("data", (chunk: Buffer) => chunks.push(chunk));
		await once(stream, "close");
		const entries = Object.entries<unknown>(received).map(([name, value]) => [name, String(value)]);
		return {
			status: Number(received[":status"]),
			headers: Object.fromEntries(entries),
			body: Buffer.concat(chunks).toString("latin1"),
		};
	} finally {
		session.destroy();
	}
}
