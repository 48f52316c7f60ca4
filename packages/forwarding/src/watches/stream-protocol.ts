import { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { endStreamFlag, endStreamFromJson } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import type { Fields } from "../inbound-call.ts";

/** How a stream has ended: not as its protocol requires, or with a status, whose error is absent if it is OK. */
export type StreamEnd =
	| { readonly kind: "missing" }
	| { readonly kind: "status"; readonly error: ConnectError | undefined };

/** Where a protocol has the end of a stream. */
export interface StreamProtocol {
	/** The format of its messages. */
	readonly format: "binary" | "json";
	/** The flag of the message that ends a stream; `undefined` if the trailers of HTTP/2 do. */
	readonly endFlag: number | undefined;
	/**
	 * How a stream has ended.
	 *
	 * @param message - the one that ends the stream, without its prefix.
	 * @param trailers - those of HTTP/2, or the headers if a response consists of nothing else.
	 */
	endOf(message: Uint8Array | undefined, trailers: Fields): StreamEnd;
	/** The end of a stream that was successful. */
	readonly ok: { readonly frame?: Uint8Array; readonly trailers?: Fields };
}

const contentTypes =
	/^application\/(?<protocol>grpc|grpc-web|connect)(?:\+(?<format>proto|json))?$/;

/** The protocol of streams with this content type; `undefined` if there is none whose messages can be read. */
export function streamProtocol(contentType: string | undefined): StreamProtocol | undefined {
	const [bare = ""] = (contentType ?? "").split(";");
	const { protocol, format } = contentTypes.exec(bare.trim())?.groups ?? {};
	const common = { format: format === "json" ? "json" : "binary" } as const;
	switch (protocol) {
		case "grpc":
			return {
				...common,
				endFlag: undefined,
				endOf: (_, trailers) => statusOf(new Headers(trailers)),
				ok: { trailers: { "grpc-status": "0" } },
			};
		case "grpc-web":
			return {
				...common,
				endFlag: trailerFlag,
				endOf: (message, trailers) =>
					statusOf(message === undefined ? new Headers(trailers) : trailerParse(message)),
				ok: { frame: encodeEnvelope(trailerFlag, Buffer.from("grpc-status: 0\r\n")) },
			};
		case "connect":
			return {
				...common,
				endFlag: endStreamFlag,
				endOf: (message) => (message === undefined ? { kind: "missing" } : connectEnd(message)),
				ok: { frame: encodeEnvelope(endStreamFlag, Buffer.from("{}")) },
			};
		default:
			return undefined;
	}
}

function statusOf(fields: Headers): StreamEnd {
	if (!fields.has("grpc-status")) {
		return { kind: "missing" };
	}
	try {
		return { kind: "status", error: findTrailerError(fields) };
	} catch (failure) {
		// The client decides what to make of it.
		return { kind: "status", error: ConnectError.from(failure) };
	}
}

function connectEnd(message: Uint8Array): StreamEnd {
	try {
		return { kind: "status", error: endStreamFromJson(message).error };
	} catch (failure) {
		return { kind: "status", error: ConnectError.from(failure) };
	}
}
