import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromHttpStatus, contentTypeRegExp } from "@connectrpc/connect/protocol-grpc";
import { statusError } from "./grpc-status.ts";
import { fieldOf, toHeaders } from "./wire-headers.ts";

const usualType = "application/grpc+proto";

/** The error if the headers of a response end its call; `undefined` if messages and trailers may follow. */
export function responseError(
	headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
): ConnectError | undefined {
	const status = headers[":status"];
	const type = headers["content-type"];
	if (status !== 200) {
		const what = status === 415 ? ": the server does not support gRPC for this method" : "";
		return new ConnectError(
			`HTTP ${status}${what}`,
			codeFromHttpStatus(status ?? 0),
			toHeaders(headers),
		);
	}
	if (type !== usualType && !(type !== undefined && isBinaryGrpc(type))) {
		return new ConnectError(
			`unsupported content type ${type ?? null}: the server did not respond with gRPC`,
			Code.Unknown,
			toHeaders(headers),
		);
	}
	const encoding = fieldOf(headers, "grpc-encoding");
	if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
		return new ConnectError(
			`unsupported response encoding "${encoding}": none was offered`,
			Code.Internal,
			toHeaders(headers),
		);
	}
	return statusError(headers);
}

function isBinaryGrpc(type: string): boolean {
	const match = contentTypeRegExp.exec(type);
	return match !== null && match[1] === undefined;
}
