import { setTimeout } from "node:timers/promises";
import type { Outcome } from "../history/history.ts";
import type { JsonObject } from "./json.ts";
import { objectOf, textOf } from "./json.ts";

/** The outcome of a call; `unsent` if the connection was refused. */
export type CallOutcome = Outcome<JsonObject> | { readonly kind: "unsent" };

/** The timeout of a client, in milliseconds: longer than the timeouts of servers. */
const timeoutMs = 60_000;

/** The codes with which the call certainly had no effect. */
const definite = new Set([
	"failed_precondition",
	"invalid_argument",
	"aborted",
	"not_found",
	"already_exists",
	"permission_denied",
	"resource_exhausted",
]);

/** The reason of an unknown outcome of a call that may still take effect. */
export const noResponse = `no response in ${timeoutMs} ms`;

/** Calls the resource service of a server with JSON over HTTP. All reads are strong. */
export async function call(
	address: string,
	method: string,
	request: JsonObject,
	limitMs = timeoutMs,
): Promise<CallOutcome> {
	let response: Response;
	let body: JsonObject;
	try {
		response = await fetch(`${address}/plinth.resource.v1.ResourceService/${method}`, {
			method: "POST",
			headers: {
				"content-type": "application/json",
				"x-plinth-consistency-mode": "consistent",
			},
			body: JSON.stringify(request),
			signal: AbortSignal.timeout(limitMs),
		});
		body = objectOf(await response.json());
	} catch (failure) {
		return failureOf(failure);
	}
	if (response.ok) {
		return { kind: "done", value: body };
	}
	const [code, message] = [textOf(body.code), textOf(body.message)];
	return definite.has(code)
		? { kind: "refused", code, message }
		: { kind: "unknown", why: `${code}: ${message}` };
}

/** Repeats a call until it succeeds, and returns its response. */
export async function callUntilDone(
	address: string,
	method: string,
	request: JsonObject,
	limitMs: number,
): Promise<JsonObject> {
	const end = performance.now() + limitMs;
	for (;;) {
		const response = await call(address, method, request);
		if (response.kind === "done") {
			return response.value;
		}
		if (performance.now() > end) {
			throw new Error(`${method} at ${address}: ${JSON.stringify(response)}`);
		}
		await setTimeout(500);
	}
}

function failureOf(failure: unknown): CallOutcome {
	if (!(failure instanceof Error)) {
		throw failure;
	}
	if (failure.name === "TimeoutError") {
		return { kind: "unknown", why: noResponse };
	}
	const { cause } = failure;
	const code = cause instanceof Error && "code" in cause ? String(cause.code) : failure.message;
	return code === "ECONNREFUSED" ? { kind: "unsent" } : { kind: "unknown", why: code };
}
