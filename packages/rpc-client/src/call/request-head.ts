import type { OutgoingHttpHeaders } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
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

/** Makes the headers of requests to one server. */
export class RequestHead {
	readonly #prefix: string;
	readonly #clock: Clock;
	readonly #headers: Readonly<Record<string, string>>;

	/**
	 * @param baseUrl - its path precedes the paths of methods.
	 * @param headers - of all requests.
	 */
	constructor(baseUrl: URL, clock: Clock, headers: Readonly<Record<string, string>>) {
		this.#prefix = baseUrl.pathname.replace(/\/+$/, "");
		this.#clock = clock;
		this.#headers = headers;
	}

	/** The headers of a call. */
	of(method: DescMethod, { header, deadlineMs }: CallRequest): OutgoingHttpHeaders {
		const head: OutgoingHttpHeaders = {
			...this.#headers,
			":method": "POST",
			":path": `${this.#prefix}/${method.parent.typeName}/${method.name}`,
			"content-type": "application/grpc+proto",
			te: "trailers",
			"user-agent": "plinth",
		};
		if (deadlineMs !== undefined) {
			head["grpc-timeout"] = timeoutHeader(deadlineMs - this.#clock.monotonic());
		}
		if (header !== undefined) {
			for (const [name, value] of header) {
				if (!protocolHeaders.has(name)) {
					head[name] = value;
				}
			}
		}
		return head;
	}
}
