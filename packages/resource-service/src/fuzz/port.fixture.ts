import { connect, createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import type { TypeRegistry } from "@plinth/resource";
import { correctConnectErrors } from "../errors/sendable-errors.ts";

/** A request as it goes over the wire. */
export interface WireRequest {
	readonly path: string;
	/** Absent: a GET. */
	readonly body?: Uint8Array;
	readonly headers: Readonly<Record<string, string>>;
}

/** A response as it came over the wire. */
export interface WireResponse {
	/** The HTTP status. */
	readonly status: number;
	/** The name of the error's code, as Connect spells it; `ok` without an error. */
	readonly code: string;
	readonly body: Buffer;
}

/** A service on a real port, and a connection to it that can send any bytes. */
export interface Port extends AsyncDisposable {
	send(request: WireRequest): Promise<WireResponse>;
}

/** Serves the resource service as a server does. */
export async function openPort(
	service: ServiceImpl<typeof ResourceService>,
	registry: TypeRegistry,
): Promise<Port> {
	const server = createServer(
		connectNodeAdapter({
			routes: (router) => router.service(ResourceService, service),
			readMaxBytes: 4 * 1024 * 1024,
			jsonOptions: { registry: registry.messages(), ignoreUnknownFields: false },
			requestGate: correctConnectErrors,
		}),
	);
	const accepted = new Set<ServerHttp2Session>();
	server.on("session", (each) => {
		accepted.add(each);
		each.on("close", () => accepted.delete(each));
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const session = connect(`http://127.0.0.1:${port}`);
	return {
		send: ({ path, body, headers }) =>
			new Promise((resolve, reject) => {
				const stream = session.request({
					":method": body === undefined ? "GET" : "POST",
					":path": path,
					...headers,
				});
				const chunks: Buffer[] = [];
				let status = 0;
				let contentType = "";
				let grpcStatus: string | undefined;
				// The response is complete, and the server need not have read all of the request.
				const finish = () => setImmediate(() => stream.writableFinished || stream.destroy());
				stream.on("response", (head) => {
					status = Number(head[":status"]);
					contentType = String(head["content-type"] ?? "");
					grpcStatus = head["grpc-status"]?.toString();
				});
				stream.on("trailers", (trailers) => {
					grpcStatus = trailers["grpc-status"]?.toString() ?? grpcStatus;
					finish();
				});
				stream.on("end", finish);
				stream.on("data", (chunk: Buffer) => chunks.push(chunk));
				stream.on("error", reject);
				const patience = setTimeout(() => {
					stream.close();
					reject(new Error(`no response within ${patienceMs} ms`));
				}, patienceMs);
				stream.on("close", () => {
					clearTimeout(patience);
					const bytes = Buffer.concat(chunks);
					resolve({ status, code: codeOf(status, contentType, grpcStatus, bytes), body: bytes });
				});
				stream.end(body);
			}),
		async [Symbol.asyncDispose]() {
			session.destroy();
			const closed = new Promise<void>((resolve) => server.close(() => resolve()));
			for (const each of accepted) {
				each.destroy();
			}
			await closed;
		},
	};
}

/** The timeout of a response. */
const patienceMs = 5_000;

/** By number, as Connect spells them. */
const codes = [
	"ok",
	"canceled",
	"unknown",
	"invalid_argument",
	"deadline_exceeded",
	"not_found",
	"already_exists",
	"permission_denied",
	"resource_exhausted",
	"failed_precondition",
	"aborted",
	"out_of_range",
	"unimplemented",
	"internal",
	"unavailable",
	"data_loss",
	"unauthenticated",
] as const;

function codeOf(
	status: number,
	contentType: string,
	grpcStatus: string | undefined,
	body: Buffer,
): string {
	if (contentType.startsWith("application/grpc")) {
		return grpcStatus === undefined ? "no status" : (codes[Number(grpcStatus)] ?? grpcStatus);
	}
	if (contentType.startsWith("application/connect+")) {
		return codeOfJson(lastEnvelope(body));
	}
	return status === 200 ? "ok" : codeOfJson(body.toString());
}

function codeOfJson(text: string): string {
	const end: unknown = text === "" ? {} : JSON.parse(text);
	const error = isObject(end) && isObject(end.error) ? end.error : end;
	return isObject(error) && typeof error.code === "string" ? error.code : "ok";
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

/** The end-of-stream message of Connect. */
function lastEnvelope(body: Buffer): string {
	let last = "";
	for (let at = 0; at + 5 <= body.length; ) {
		const length = body.readUInt32BE(at + 1);
		last = body.toString("utf8", at + 5, at + 5 + length);
		at += 5 + length;
	}
	return last;
}

/** The bytes of a message in the envelope of streams. */
export function enveloped(bytes: Uint8Array, flags = 0): Uint8Array {
	const head = Buffer.alloc(5);
	head.writeUInt8(flags);
	head.writeUInt32BE(bytes.length, 1);
	return Buffer.concat([head, bytes]);
}
