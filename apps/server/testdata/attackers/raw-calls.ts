import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";
import type { Target } from "./attack.ts";

const service = "/plinth.resource.v1.ResourceService";

/** The paths of the methods that are attacked. */
export const paths = {
	write: `${service}/Write`,
	list: `${service}/List`,
	watch: `${service}/WatchList`,
	healthWatch: "/grpc.health.v1.Health/Watch",
} as const;

/** The message in an envelope of gRPC and of Connect's streams. */
export function enveloped(message: Uint8Array): Buffer {
	const envelope = Buffer.alloc(5);
	envelope.writeUInt32BE(message.length, 1);
	return Buffer.concat([envelope, message]);
}

/** An HTTP/2 connection, or `undefined` if the server did not accept it. */
export async function session(target: Target): Promise<ClientHttp2Session | undefined> {
	const opened = connect(target.address, { maxSessionMemory: 1_000 });
	opened.on("error", () => {});
	target.end.addEventListener("abort", () => opened.destroy(), { once: true });
	const ready = await Promise.race([
		once(opened, "remoteSettings").then(() => true),
		once(opened, "close").then(() => false),
	]).catch(() => false);
	return ready ? opened : undefined;
}

/** Starts a call. The caller has to read the response. */
export function begin(
	from: ClientHttp2Session,
	path: string,
	headers: Readonly<Record<string, string>>,
): ClientHttp2Stream {
	const stream = from.request({ ":method": "POST", ":path": path, ...headers });
	stream.on("error", () => {});
	return stream;
}

/** A unary call in JSON over HTTP/2; resolves to its status, or 0 if the stream was reset. */
export async function unary(
	from: ClientHttp2Session,
	path: string,
	token: string,
	body: string | Buffer,
): Promise<{ readonly status: number; readonly text: string }> {
	const contentType = typeof body === "string" ? "application/json" : "application/proto";
	const stream = begin(from, path, {
		"content-type": contentType,
		...(token !== "" && { authorization: `Bearer ${token}` }),
	});
	let status = 0;
	let text = "";
	stream.once("response", (headers) => {
		status = Number(headers[":status"] ?? 0);
	});
	stream.setEncoding("utf8");
	stream.on("data", (chunk: string) => {
		text += chunk;
	});
	const closed = new Promise((resolve) => stream.once("close", resolve));
	stream.end(body);
	await closed;
	return { status, text };
}

/** A connection of HTTP/1.1, paused: it reads nothing. */
export async function socket(target: Target): Promise<Socket> {
	const { hostname, port } = new URL(target.address);
	const opened = connectSocket(Number(port), hostname);
	opened.on("error", () => {});
	opened.pause();
	target.end.addEventListener("abort", () => opened.destroy(), { once: true });
	await once(opened, "connect");
	return opened;
}

/** Resolves when the socket has been closed. */
export function closed(opened: Socket): Promise<void> {
	return opened.destroyed
		? Promise.resolve()
		: new Promise((resolve) => opened.once("close", () => resolve()));
}

/** A request of HTTP/1.1, in bytes. */
export function http1(
	path: string,
	headers: Readonly<Record<string, string>>,
	body: string | Uint8Array,
): Buffer {
	const bytes = typeof body === "string" ? Buffer.from(body) : body;
	const lines = Object.entries({
		host: "127.0.0.1",
		"content-length": String(bytes.length),
		...headers,
	}).map(([name, value]) => `${name}: ${value}\r\n`);
	return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}
