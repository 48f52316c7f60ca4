import { setTimeout } from "node:timers/promises";
import type { Outcome } from "../history/history.ts";
import type { JsonObject } from "./json.ts";
import { objectOf, textOf } from "./json.ts";

/** What a call came to; `unsent` where nobody listened. */
export type Answer = Outcome<JsonObject> | { readonly kind: "unsent" };

/** How long a client waits for an answer, in milliseconds: longer than a server tries. */
const timeoutMs = 60_000;

/** What an answer with one of these codes says was not done. */
const definite = new Set([
	"failed_precondition",
	"invalid_argument",
	"aborted",
	"not_found",
	"already_exists",
	"permission_denied",
	"resource_exhausted",
]);

/** Why an outcome is unknown of a call that may still be done. */
export const noAnswer = `no answer in ${timeoutMs} ms`;

/** Calls the resource service of a server as people do: JSON over HTTP. All reads are strong. */
export async function call(address: string, method: string, request: JsonObject): Promise<Answer> {
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
			signal: AbortSignal.timeout(timeoutMs),
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

/** Calls until there is an answer, and answers that. */
export async function insist(
	address: string,
	method: string,
	request: JsonObject,
	limitMs: number,
): Promise<JsonObject> {
	const end = performance.now() + limitMs;
	for (;;) {
		const answer = await call(address, method, request);
		if (answer.kind === "done") {
			return answer.value;
		}
		if (performance.now() > end) {
			throw new Error(`${method} at ${address}: ${JSON.stringify(answer)}`);
		}
		await setTimeout(500);
	}
}

function failureOf(failure: unknown): Answer {
	if (!(failure instanceof Error)) {
		throw failure;
	}
	if (failure.name === "TimeoutError") {
		return { kind: "unknown", why: noAnswer };
	}
	const { cause } = failure;
	const code = cause instanceof Error && "code" in cause ? String(cause.code) : failure.message;
	return code === "ECONNREFUSED" ? { kind: "unsent" } : { kind: "unknown", why: code };
}
