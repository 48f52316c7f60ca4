import type { OutgoingHttpHeaders } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { Exchange } from "./exchange.ts";
import type { RequestHandler } from "./request-handler.ts";

/**
 * Sends what a handler returned, as fast as the client takes it. Resolves when all was written and the
 * handler has returned; the client may not have taken it then.
 *
 * @param takeTurn - called before more is asked of the handler after the client had to be waited for.
 * @throws ConnectError where the client goes away or the exchange is cut.
 */
export async function sendResponse(
	{ status, header, body, trailer }: UniversalServerResponse,
	exchange: Exchange,
	response: Parameters<RequestHandler>[1],
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
		addTrailers(response, nodeHeaders(trailer));
	}
	exchange.end();
}

/** Tells the handler that nothing more is taken, and waits until it has returned. */
async function endHandler(
	chunks: AsyncIterator<Uint8Array> | undefined,
	failure: unknown,
): Promise<void> {
	try {
		await chunks?.throw?.(failure);
	} catch {
		// It rejects with what it was told.
	}
	try {
		await chunks?.return?.();
	} catch {
		// Likewise.
	}
}

/** Sends the headers, unless they were sent. @throws ConnectError where the exchange is closed. */
export function writeHead(
	response: Parameters<RequestHandler>[1],
	exchange: Exchange,
	status: number,
	header: UniversalServerResponse["header"],
): void {
	if (exchange.isClosed) {
		throw new ConnectError("the client went away", Code.Canceled);
	}
	if (response.headersSent) {
		return;
	}
	// The two kinds of response share this signature, but not a type that says so.
	if ("stream" in response) {
		response.writeHead(status, nodeHeaders(header));
	} else {
		response.writeHead(status, nodeHeaders(header));
	}
}

/** Adds trailers to a response whose headers were sent. */
function addTrailers(response: Parameters<RequestHandler>[1], trailers: OutgoingHttpHeaders): void {
	// Over HTTP/1.1 it takes less, as numbers and lists are not among what Connect sets.
	response.addTrailers(trailers);
}

/** Headers as Node takes them. */
function nodeHeaders(headers: UniversalServerResponse["header"]): OutgoingHttpHeaders {
	const result: OutgoingHttpHeaders = {};
	if (headers !== undefined) {
		for (const [name, value] of new Headers(headers)) {
			result[name] = value;
		}
	}
	return result;
}
