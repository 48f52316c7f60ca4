import { once } from "node:events";
import { request as requestHttp1 } from "node:http";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

/** A request in bytes. */
export interface RawCall {
	readonly http: 1 | 2;
	readonly method?: "GET" | "POST";
	/** Including the query. */
	readonly path: string;
	readonly headers: Readonly<Record<string, string>>;
	/** The part of the body that is sent. */
	readonly body?: Uint8Array;
	/** Whether the body ends after it; otherwise the request stays open. */
	readonly ends: boolean;
}

/** The complete response: status, headers, body and trailers, as text. */
export async function rawCall(address: string, call: RawCall): Promise<string> {
	return call.http === 1 ? overHttp1(address, call) : overHttp2(address, call);
}

async function overHttp1(address: string, call: RawCall): Promise<string> {
	const { method = "POST", path, headers, body = new Uint8Array(), ends } = call;
	const request = requestHttp1(`${address}${path}`, {
		method,
		headers: { ...headers, ...(ends ? { "content-length": body.length } : {}) },
		agent: false,
	});
	// A server that does not read all of a body may end the connection.
	request.on("error", () => {});
	onTestFinished(() => void request.destroy());
	request.flushHeaders();
	if (ends) {
		request.end(body);
	} else if (body.length > 0) {
		request.write(body);
	}
	const [response] = await once(request, "response");
	const received = await text(response);
	return `${response.statusCode} ${response.rawHeaders} ${received} ${response.rawTrailers}`;
}

async function overHttp2(address: string, call: RawCall): Promise<string> {
	const { method = "POST", path, headers, body = new Uint8Array(), ends } = call;
	const session = connect(address);
	session.on("error", () => {});
	onTestFinished(() => session.destroy());
	const stream = session.request({ ...headers, ":method": method, ":path": path });
	let trailers = "";
	stream.on("error", () => {});
	stream.on("trailers", (received) => {
		trailers = JSON.stringify(received);
	});
	// A GET over HTTP/2 ends with its headers.
	if (method === "POST" && ends) {
		stream.end(body);
	} else if (body.length > 0) {
		stream.write(body);
	}
	const [received] = await once(stream, "response");
	return `${JSON.stringify(received)} ${await text(stream)} ${trailers}`;
}
