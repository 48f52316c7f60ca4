import type { DescMethod } from "@bufbuild/protobuf";
import type { Fields } from "@plinth/http2";
import type { Clock } from "@plinth/runtime";
import type { CallRequest } from "@plinth/transport";
import { timeoutHeader } from "./timeout-header.ts";

/** Headers of the protocol, which callers can't set. */
const protocolHeaders = new Set([
	"content-type",
	"te",
	"grpc-timeout",
	"grpc-encoding",
	"grpc-accept-encoding",
]);

/** Makes the heads of requests to one server. */
export class RequestHead {
	readonly #prefix: string;
	readonly #clock: Clock;
	/** Those of all requests, and the names of those that a call can replace. */
	readonly #before: Fields;
	readonly #after: Fields;
	readonly #headers: Readonly<Record<string, string>>;
	/** Heads without headers and a timeout of their own, by method. */
	readonly #plain = new Map<DescMethod, Fields>();

	/**
	 * @param baseUrl - its path precedes the paths of methods.
	 * @param headers - of all requests.
	 */
	constructor(baseUrl: URL, clock: Clock, headers: Readonly<Record<string, string>>) {
		this.#prefix = baseUrl.pathname.replace(/\/+$/, "");
		this.#clock = clock;
		this.#headers = Object.fromEntries(
			Object.entries(headers).filter(([name]) => !protocolHeaders.has(name)),
		);
		const scheme = baseUrl.protocol.slice(0, -1);
		this.#before = [":method", "POST", ":scheme", scheme, ":authority", baseUrl.host];
		this.#after = [
			...["content-type", "application/grpc+proto", "te", "trailers"],
			...["user-agent", "plinth"],
		];
	}

	/** The head of a call. */
	of(method: DescMethod, { header, deadlineMs }: CallRequest): Fields {
		if (header === undefined && deadlineMs === undefined) {
			return this.#plainOf(method);
		}
		const fields = [...this.#before, ":path", this.#pathOf(method), ...this.#after];
		if (deadlineMs !== undefined) {
			fields.push("grpc-timeout", timeoutHeader(deadlineMs - this.#clock.monotonic()));
		}
		for (const [name, value] of Object.entries(this.#headers)) {
			if (header?.has(name) !== true) {
				fields.push(name, value);
			}
		}
		for (const [name, value] of header ?? []) {
			if (name === "user-agent") {
				fields[fields.indexOf(name) + 1] = value;
			} else if (!protocolHeaders.has(name)) {
				fields.push(name, value);
			}
		}
		return fields;
	}

	#plainOf(method: DescMethod): Fields {
		let head = this.#plain.get(method);
		if (head === undefined) {
			const path = this.#pathOf(method);
			const fixed = Object.entries(this.#headers).flat();
			head = [...this.#before, ":path", path, ...this.#after, ...fixed];
			this.#plain.set(method, head);
		}
		return head;
	}

	#pathOf(method: DescMethod): string {
		return `${this.#prefix}/${method.parent.typeName}/${method.name}`;
	}
}
