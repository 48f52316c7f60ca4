import { once } from "node:events";
import {
	type ClientHttp2Session,
	type ClientHttp2Stream,
	connect as connectHttp2,
} from "node:http2";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** An HTTP/2 connection that is closed when the test is over. With `initialWindowSize: 0` it accepts no response bodies. */
export function openSession(
	address: string,
	settings: { readonly initialWindowSize?: number } = {},
): ClientHttp2Session {
	const session = connectHttp2(address, { settings, maxSessionMemory: 1_000 });
	session.on("error", () => {});
	onTestFinished(() => session.destroy());
	return session;
}

/** How a raw call ended. */
export interface RawEnd {
	/** The code of the RST_STREAM; 0 if there was none. */
	readonly rstCode: number;
	readonly status: string | undefined;
	readonly body: string;
}

/** A call over HTTP/2 that is not finished yet. */
export interface RawCall {
	readonly stream: ClientHttp2Stream;
	readonly ended: Promise<RawEnd>;
}

/** Posts `body` to a path. The request stays open if `isOpen` is set. */
export function post(
	session: ClientHttp2Session,
	path: string,
	body: string | Buffer,
	options: {
		readonly contentType?: string;
		readonly isOpen?: boolean;
		readonly headers?: Readonly<Record<string, string>>;
	} = {},
): RawCall {
	const stream = session.request({
		":method": "POST",
		":path": path,
		"content-type": options.contentType ?? "application/json",
		te: "trailers",
		...options.headers,
	});
	stream.on("error", () => {});
	let status: string | undefined;
	let text = "";
	const onHeaders = (headers: Readonly<Record<string, unknown>>) => {
		const found = headers["grpc-status"];
		status = found === undefined ? (status ?? String(headers[":status"])) : `grpc ${String(found)}`;
	};
	stream.on("response", onHeaders);
	stream.on("trailers", onHeaders);
	stream.setEncoding("latin1").on("data", (data: string) => {
		text += data;
	});
	if (options.isOpen === true) {
		stream.write(body);
	} else {
		stream.end(body);
	}
	const ended = new Promise<RawEnd>((resolve) => {
		stream.once("close", () => resolve({ rstCode: stream.rstCode ?? 0, status, body: text }));
	});
	return { stream, ended };
}

/** A connection that does not read, and is closed when the test is over. */
export async function openSocket(address: string): Promise<Socket> {
	const socket = connect(Number(new URL(address).port), "127.0.0.1");
	socket.on("error", () => {});
	onTestFinished(() => {
		socket.destroy();
	});
	await once(socket, "connect");
	socket.pause();
	return socket;
}

/** The bytes of a POST over HTTP/1.1. */
export function postText(path: string, body: string, contentType = "application/json"): string {
	return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${contentType}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** An envelope of Connect's streams, gRPC and gRPC-Web around a message. */
export function enveloped(message: string): Buffer {
	const envelope = Buffer.alloc(5);
	envelope.writeUInt32BE(message.length, 1);
	return Buffer.concat([envelope, Buffer.from(message, "latin1")]);
}

/** The sum of a metric over all its labels that contain `label`. */
export async function metric(address: string, name: string, label = ""): Promise<number> {
	const response = await fetch(`${address}/metrics`, { headers: { connection: "close" } });
	let sum = 0;
	for (const line of (await response.text()).split("\n")) {
		if (line.startsWith(name) && line.includes(label)) {
			sum += Number(line.slice(line.lastIndexOf(" ") + 1));
		}
	}
	return sum;
}

/** Resolves when a metric has the value. */
export async function metricReaches(
	address: string,
	name: string,
	value: number,
	label = "",
): Promise<void> {
	while ((await metric(address, name, label)) !== value) {
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}
