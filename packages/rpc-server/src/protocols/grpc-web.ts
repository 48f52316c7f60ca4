import {
	contentTypeJson,
	contentTypeProto,
	trailerFlag,
	trailerSerialize,
} from "@connectrpc/connect/protocol-grpc-web";
import { envelope } from "../messages/envelope.ts";
import { statusOk, trailersOf } from "./grpc.ts";
import { fieldsOf, joined, type Protocol, type Response } from "./protocol.ts";

const endOk = envelope(trailerFlag, trailerSerialize(new Headers(statusOk)));

/** gRPC-Web, in its binary form: trailers are the last envelope of the body. */
export function grpcWebProtocol(isBinary: boolean): Protocol {
	const responseHeader = { "content-type": isBinary ? contentTypeProto : contentTypeJson };
	const sendHead = ({ carrier, context }: Response) =>
		carrier.respond(200, fieldsOf(context.touchedHeader, responseHeader));
	return {
		name: "grpc-web",
		isBinary,
		isEnveloped: true,
		endFlag: trailerFlag,
		responseHeader,
		responseTrailer: statusOk,
		sendHead,
		sendMessage(response, message) {
			this.sendEnd(response, message, undefined);
		},
		sendEnd(response, pending, error) {
			const { touchedTrailer } = response.context;
			const isPlain = touchedTrailer === undefined && error === undefined;
			const trailers = () => new Headers({ ...trailersOf(touchedTrailer, error) });
			const end = isPlain ? endOk : envelope(trailerFlag, trailerSerialize(trailers()));
			sendHead(response);
			response.carrier.end(joined(pending, end), undefined);
		},
	};
}
