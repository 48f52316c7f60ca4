/**
 * The process that the conformance runner starts, once for each combination of protocol, HTTP version and TLS:
 * `main.fixture.ts plinth|connect identity|compressed`. It reads its options from standard input, and writes its port
 * to standard output. Both messages are preceded by their length, of four bytes. The runner ends the process.
 */
import { buffer } from "node:stream/consumers";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HTTPVersion } from "../../testdata/conformance/gen/connectrpc/conformance/v1/config_pb.ts";
import {
	ServerCompatRequestSchema,
	ServerCompatResponseSchema,
} from "../../testdata/conformance/gen/connectrpc/conformance/v1/server_compat_pb.ts";
import { serveConnect, servePlinth } from "./serve-conformance.fixture.ts";

const lengthBytes = 4;

const request = fromBinary(
	ServerCompatRequestSchema,
	(await buffer(process.stdin)).subarray(lengthBytes),
);
const { serverCreds, clientTlsCert } = request;
const serve = process.argv[2] === "plinth" ? servePlinth : serveConnect;
const port = await serve({
	httpVersion: request.httpVersion === HTTPVersion.HTTP_VERSION_1 ? 1 : 2,
	messageBytes: request.messageReceiveLimit,
	isCompressed: process.argv[3] === "compressed",
	tls: serverCreds && {
		cert: textOf(serverCreds.cert),
		key: textOf(serverCreds.key),
		...(clientTlsCert.length > 0 && { ca: textOf(clientTlsCert) }),
	},
});
const response = toBinary(
	ServerCompatResponseSchema,
	create(ServerCompatResponseSchema, { port, ...(serverCreds && { pemCert: serverCreds.cert }) }),
);
const length = Buffer.alloc(lengthBytes);
length.writeUInt32BE(response.length);
process.stdout.write(Buffer.concat([length, response]));

function textOf(bytes: Uint8Array): string {
	return Buffer.from(bytes).toString();
}
