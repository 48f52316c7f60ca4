import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import type { Clock } from "@plinth/runtime";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { type Endpoint, tlsOptions } from "./connection.ts";

/** A call by the names of a method and of the fields, without knowing their types. */
export interface RawCall {
	/** As in `plinth.type.v1.TypeService/ListTypes`. */
	readonly method: string;
	/** The request, as JSON. */
	readonly body: string;
	/** Its timers end a call that is no stream and takes longer than the endpoint's timeout. */
	readonly clock: Clock;
	readonly signal: AbortSignal;
}

/** A response is cut off at this length: a server that sends more is none of Plinth's. */
const maxBytes = 256 * 1024 * 1024;

/**
 * Calls a method by Connect's protocol with JSON. Yields the response, or each message of a stream.
 *
 * @throws ConnectError; Failure if the server's response is not JSON
 */
export async function* rawCall(endpoint: Endpoint, call: RawCall): AsyncGenerator<unknown, void> {
	const response = await unaryCall(endpoint, call);
	if (response !== isStream) {
		yield parsed(response);
		return;
	}
	const stream = await post(
		endpoint,
		{ ...call, body: envelope(call.body) },
		{ "content-type": "application/connect+json" },
	);
	if (stream.statusCode !== 200) {
		throw errorOf(stream, await textOf(stream), call.method);
	}
	for await (const { isEnd, text } of envelopesOf(stream)) {
		const message = parsed(text);
		if (!isEnd) {
			yield message;
			continue;
		}
		const { error } = (message ?? {}) as { readonly error?: WireError };
		if (error) {
			throw connectError(error);
		}
		return;
	}
	throw new ConnectError("the server ended the stream in the middle", Code.Unavailable);
}

const unsupportedMediaType = 415;
const isStream = Symbol("the method is a stream");

/** The response of a method that is no stream. Ends at the endpoint's timeout, if any, whatever the server does. */
async function unaryCall(endpoint: Endpoint, call: RawCall): Promise<string | typeof isStream> {
	const { requestTimeoutMs } = endpoint;
	const timeout = new AbortController();
	const timer =
		requestTimeoutMs === undefined
			? undefined
			: call.clock.setTimer(requestTimeoutMs, () => timeout.abort());
	const signal = AbortSignal.any([call.signal, timeout.signal]);
	try {
		const response = await post(
			endpoint,
			{ ...call, signal },
			{
				"content-type": "application/json",
				...(requestTimeoutMs !== undefined && {
					"connect-timeout-ms": String(Math.ceil(requestTimeoutMs)),
				}),
			},
		);
		// Only the server knows which methods are streams: it refuses the media type of unary calls for them.
		if (response.statusCode === unsupportedMediaType) {
			response.resume();
			return isStream;
		}
		const text = await textOf(response);
		if (response.statusCode !== 200) {
			throw errorOf(response, text, call.method);
		}
		return text;
	} catch (error) {
		if (timeout.signal.aborted && !call.signal.aborted) {
			const message = `no response within ${requestTimeoutMs} ms`;
			throw new ConnectError(message, Code.DeadlineExceeded, undefined, undefined, error);
		}
		throw error;
	} finally {
		timer?.cancel();
	}
}

/** @throws Failure */
function parsed(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch (cause) {
		const begin = text.length > shownLength ? `${text.slice(0, shownLength)}…` : text;
		throw new Failure(
			exitCodes.failed,
			`the response is not JSON: ${JSON.stringify(begin)}. Is it a Plinth server?`,
			{ cause },
		);
	}
}

/** How much is shown of a response that is not JSON. */
const shownLength = 80;

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
	const url = new URL(endpoint.server);
	url.pathname = `${url.pathname.replace(/\/$/, "")}/${method}`;
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

/** @throws ConnectError if the connection is lost. */
async function* chunksOf(response: IncomingMessage): AsyncGenerator<Buffer, void> {
	try {
		yield* response as AsyncIterable<Buffer>;
	} catch (error) {
		// Without a code of its own, since the server could be reached.
		const cause = new Error("the connection was lost within the response", { cause: error });
		throw new ConnectError(cause.message, Code.Unavailable, undefined, undefined, cause);
	}
}

async function textOf(response: IncomingMessage): Promise<string> {
	const chunks: Buffer[] = [];
	let length = 0;
	for await (const chunk of chunksOf(response)) {
		length += chunk.byteLength;
		if (length > maxBytes) {
			throw new ConnectError(`the response is larger than ${maxBytes} bytes`, Code.Internal);
		}
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString();
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
	let chunks: Buffer[] = [];
	let length = 0;
	/** With fewer bytes, there is no further head or message. */
	let needed = headLength;
	for await (const chunk of chunksOf(response)) {
		chunks.push(chunk);
		length += chunk.byteLength;
		if (length < needed) {
			continue;
		}
		let waiting = Buffer.concat(chunks);
		needed = headLength;
		while (waiting.byteLength >= needed) {
			const end = headLength + waiting.readUInt32BE(1);
			if (end > maxBytes) {
				throw new ConnectError(`a message is larger than ${maxBytes} bytes`, Code.Internal);
			}
			if (waiting.byteLength < end) {
				needed = end;
				break;
			}
			const isEnd = ((waiting[0] ?? 0) & endFlag) !== 0;
			yield { isEnd, text: waiting.toString("utf8", headLength, end) };
			waiting = waiting.subarray(end);
		}
		chunks = [waiting];
		length = waiting.byteLength;
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
