import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { type Endpoint, tlsOptions } from "./connection.ts";

/** A call by the names of a method and of the fields, without knowing their types. */
export interface RawCall {
	/** As in `plinth.type.v1.TypeService/ListTypes`. */
	readonly method: string;
	/** The request, as JSON. */
	readonly body: string;
	readonly signal: AbortSignal;
}

/** A response is cut off at this length: a server that sends more is none of Plinth's. */
const maxBytes = 256 * 1024 * 1024;

/**
 * Calls a method by Connect's protocol with JSON. Yields the response, or each message of a stream.
 *
 * @throws ConnectError
 */
export async function* rawCall(endpoint: Endpoint, call: RawCall): AsyncGenerator<string, void> {
	const unary = await post(endpoint, call, {
		"content-type": "application/json",
		"connect-timeout-ms": String(endpoint.requestTimeoutMs),
	});
	if (unary.statusCode !== unsupportedMediaType) {
		const text = (await bytesOf(unary)).toString();
		if (unary.statusCode !== 200) {
			throw errorOf(unary, text, call.method);
		}
		yield text;
		return;
	}
	unary.resume();
	// Only the server knows which methods are streams: it refuses the media type of unary calls for them.
	const stream = await post(
		endpoint,
		{ ...call, body: envelope(call.body) },
		{ "content-type": "application/connect+json" },
	);
	if (stream.statusCode !== 200) {
		throw errorOf(stream, (await bytesOf(stream)).toString(), call.method);
	}
	for await (const { isEnd, text } of envelopesOf(stream)) {
		if (!isEnd) {
			yield text;
			continue;
		}
		const { error } = JSON.parse(text) as { readonly error?: WireError };
		if (error !== undefined) {
			throw connectError(error);
		}
		return;
	}
	throw new ConnectError("the server ended the stream in the middle", Code.Unavailable);
}

const unsupportedMediaType = 415;

/** An error of Connect's protocol. */
interface WireError {
	readonly code?: string;
	readonly message?: string;
}

function post(
	endpoint: Endpoint,
	{ method, body, signal }: { method: string; body: string | Uint8Array; signal: AbortSignal },
	headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
	const url = new URL(`/${method}`, endpoint.server);
	const request = url.protocol === "https:" ? httpsRequest : httpRequest;
	const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
	const sent = request(
		url,
		{
			method: "POST",
			signal,
			headers: {
				...headers,
				"connect-protocol-version": "1",
				...(endpoint.token !== undefined && { authorization: `Bearer ${endpoint.token}` }),
			},
			...tlsOptions(endpoint),
		},
		resolve,
	);
	sent.on("error", (cause) =>
		reject(new ConnectError(cause.message, Code.Unavailable, undefined, undefined, cause)),
	);
	sent.end(body);
	return promise;
}

async function bytesOf(response: IncomingMessage): Promise<Buffer> {
	const chunks: Buffer[] = [];
	let length = 0;
	for await (const chunk of response as AsyncIterable<Buffer>) {
		length += chunk.byteLength;
		if (length > maxBytes) {
			throw new ConnectError(`the response is larger than ${maxBytes} bytes`, Code.Internal);
		}
		chunks.push(chunk);
	}
	return Buffer.concat(chunks);
}

/** One message of a stream: a byte of flags, four bytes of its length, its JSON. */
function envelope(text: string): Buffer {
	const body = Buffer.from(text);
	const head = Buffer.alloc(headLength);
	head.writeUInt32BE(body.byteLength, 1);
	return Buffer.concat([head, body]);
}

const headLength = 5;
const endFlag = 2;

async function* envelopesOf(
	response: IncomingMessage,
): AsyncGenerator<{ readonly isEnd: boolean; readonly text: string }, void> {
	let waiting = Buffer.alloc(0);
	for await (const chunk of response as AsyncIterable<Buffer>) {
		waiting = Buffer.concat([waiting, chunk]);
		while (waiting.byteLength >= headLength) {
			const end = headLength + waiting.readUInt32BE(1);
			if (end > maxBytes) {
				throw new ConnectError(`a message is larger than ${maxBytes} bytes`, Code.Internal);
			}
			if (waiting.byteLength < end) {
				break;
			}
			const isEnd = ((waiting[0] ?? 0) & endFlag) !== 0;
			yield { isEnd, text: waiting.toString("utf8", headLength, end) };
			waiting = waiting.subarray(end);
		}
	}
}

function errorOf({ statusCode }: IncomingMessage, text: string, method: string): ConnectError {
	try {
		const error = JSON.parse(text) as WireError;
		if (error.code !== undefined) {
			return connectError(error);
		}
	} catch {
		// It is no error of Connect's protocol.
	}
	return statusCode === 404
		? new ConnectError(`there is no method ${method}`, Code.Unimplemented)
		: new ConnectError(`HTTP status ${statusCode}`, Code.Unknown);
}

function connectError({ code = "", message = "" }: WireError): ConnectError {
	return new ConnectError(message, codeFromString(code) ?? Code.Unknown);
}
