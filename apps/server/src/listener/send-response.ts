import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { HeaderFields } from "@plinth/rpc-server";
import type { Exchange } from "./exchange.ts";
import type { HttpResponse } from "./request-handler.ts";

/**
 * Sends the response of a handler as fast as the client reads it. Resolves when all of it was written and the handler
 * has returned; the client may not have read all of it.
 *
 * @param takeTurn - called after a wait for the client, before more is read from the handler.
 * @throws ConnectError if the client goes away or the exchange is ended.
 */
export async function sendResponse(
	{ status, header, body, trailer }: UniversalServerResponse,
	exchange: Exchange,
	response: HttpResponse,
	takeTurn?: () => Promise<void> | undefined,
): Promise<void> {
	const chunks = body?.[Symbol.asyncIterator]();
	try {
		// Headers are sent after the first read, before which a handler may still set some.
		let chunk = await chunks?.next();
		writeHead(response, exchange, status, header);
		while (chunk !== undefined && chunk.done !== true) {
			const taken = exchange.write(chunk.value, exchange.kind === "unary");
			if (taken !== undefined) {
				await taken;
				const turn = takeTurn?.();
				if (turn !== undefined) {
					await turn;
				}
			}
			chunk = await chunks?.next();
		}
	} catch (failure) {
		await endHandler(chunks, failure);
		throw failure;
	}
	if (trailer !== undefined && !exchange.isClosed) {
		// Connect sets neither numbers nor lists, which HTTP/1.1 would not accept here.
		response.addTrailers(fieldsOf(trailer));
	}
	exchange.end();
}

/** The text to send for a request that Connect refuses with nothing but a status. */
const directions: ReadonlyMap<number | undefined, (example: string) => string> = new Map([
	[405, (example) => `method not allowed: send POST, with a content type such as ${example}`],
	[
		415,
		(example) =>
			`unsupported content type: send ${example}, or another content type of Connect, gRPC or gRPC-Web`,
	],
]);

/** The response to a call, with a text that says what to send if the request was none of a supported protocol. */
export function withDirections(
	result: UniversalServerResponse,
	methodKind: DescMethod["methodKind"],
): UniversalServerResponse {
	const text = result.body === undefined ? directions.get(result.status) : undefined;
	if (text === undefined) {
		return result;
	}
	const example = methodKind === "unary" ? "application/json" : "application/connect+json";
	const body = new TextEncoder().encode(`${text(example)}\n`);
	const header = new Headers(result.header);
	header.set("content-type", "text/plain; charset=utf-8");
	header.set("content-length", String(body.length));
	return { ...result, header, body: createAsyncIterable([body]) };
}

/** Ends the handler with an error, and waits until it has returned. */
async function endHandler(
	chunks: AsyncIterator<Uint8Array> | undefined,
	failure: unknown,
): Promise<void> {
	try {
		await chunks?.throw?.(failure);
	} catch {
		// The promise rejects with the same error.
	}
	try {
		await chunks?.return?.();
	} catch {
		// The handler has ended, which is all that matters.
	}
}

/** Sends the headers, unless they were already sent. @throws ConnectError if the exchange is closed. */
export function writeHead(
	response: HttpResponse,
	exchange: Exchange,
	status: number,
	header: UniversalServerResponse["header"],
): void {
	if (exchange.isClosed) {
		throw new ConnectError("the client disconnected", Code.Canceled);
	}
	if (response.headersSent) {
		return;
	}
	response.writeHead(status, fieldsOf(header));
}

/** Headers as fields. */
function fieldsOf(headers: UniversalServerResponse["header"]): HeaderFields {
	const result: Record<string, string> = {};
	if (headers !== undefined) {
		for (const [name, value] of new Headers(headers)) {
			result[name] = value;
		}
	}
	return result;
}
