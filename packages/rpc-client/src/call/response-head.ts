import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromHttpStatus, contentTypeRegExp } from "@connectrpc/connect/protocol-grpc";
import { type Fields, fieldValue } from "@plinth/http2";
import { statusError } from "./grpc-status.ts";
import { toHeaders } from "./wire-headers.ts";

const usualType = "application/grpc+proto";

/** The error if the headers of a response end its call; `undefined` if messages and trailers may follow. */
export function responseError(status: number, headers: Fields): ConnectError | undefined {
	const type = fieldValue(headers, "content-type");
	if (status !== 200) {
		const what = status === 415 ? ": the server does not support gRPC for this method" : "";
		return new ConnectError(
			`HTTP ${status}${what}`,
			codeFromHttpStatus(status),
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
	const encoding = fieldValue(headers, "grpc-encoding");
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
