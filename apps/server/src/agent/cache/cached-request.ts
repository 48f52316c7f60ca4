import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import {
	ListRequestSchema,
	ReadRequestSchema,
	ResourceService,
	WatchListRequestSchema,
} from "@plinth/proto";
import { gvkKey, type TypeLike } from "@plinth/resource";
import { consistencyHeader, notBeforeHeader } from "@plinth/resource-service";
import type { RequestBody } from "../../listener/request-body.ts";
import { type HttpRequest, pathOf } from "../../listener/request-handler.ts";

/** The request of a call that a cache may serve. */
export type CachedRequest = {
	/** Of its type. */
	readonly typeKey: string;
} & (
	| { readonly method: "Read"; readonly message: ReturnType<typeof decodeRead> }
	| { readonly method: "List"; readonly message: ReturnType<typeof decodeList> }
	| { readonly method: "WatchList"; readonly message: ReturnType<typeof decodeWatchList> }
);

type Method = CachedRequest["method"];

const decodeRead = (bytes: Uint8Array) => fromBinary(ReadRequestSchema, bytes);
const decodeList = (bytes: Uint8Array) => fromBinary(ListRequestSchema, bytes);
const decodeWatchList = (bytes: Uint8Array) => fromBinary(WatchListRequestSchema, bytes);

const methods: ReadonlyMap<string, DescMethod & { readonly name: string }> = new Map(
	[ResourceService.method.read, ResourceService.method.list, ResourceService.method.watchList].map(
		(method) => [`/${ResourceService.typeName}/${method.name}`, method],
	),
);

/** Formats with the Protobuf encoding, and whether their messages have prefixes. An agent can't know all types that JSON needs. */
const formats: ReadonlyMap<string, { readonly hasPrefix: boolean }> = new Map([
	["application/proto", { hasPrefix: false }],
	["application/connect+proto", { hasPrefix: true }],
	["application/grpc", { hasPrefix: true }],
	["application/grpc+proto", { hasPrefix: true }],
	["application/grpc-web", { hasPrefix: true }],
	["application/grpc-web+proto", { hasPrefix: true }],
]);

const prefixBytes = 5;

/** The method of a request that a cache may serve, as far as its head tells; `undefined` if it is to be forwarded. */
export function cachedMethod(request: HttpRequest): DescMethod | undefined {
	const method = methods.get(pathOf(request));
	if (method === undefined || request.method !== "POST") {
		return undefined;
	}
	const consistency = request.header(consistencyHeader) ?? "";
	const isCacheable =
		formats.has(request.header("content-type") ?? "") &&
		isPlain(request.header("content-encoding")) &&
		isPlain(request.header("connect-content-encoding")) &&
		isPlain(request.header("grpc-encoding")) &&
		(consistency === "" || consistency === "default");
	return isCacheable ? method : undefined;
}

function isPlain(encoding: string | undefined): boolean {
	return encoding === undefined || encoding === "identity";
}

/** The version that the response must not be older than, as the client names it; `undefined` if it is malformed. */
export function namedPosition(request: Pick<HttpRequest, "header">): number | undefined {
	const named = request.header(notBeforeHeader) ?? "";
	return versionOf(named);
}

/** The number of a version, 0 if it is empty; `undefined` if it is malformed, or can't be told from others. */
export function versionOf(version: string): number | undefined {
	const number = /^\d{0,16}$/.test(version) ? Number(version) : Number.NaN;
	return Number.isSafeInteger(number) ? number : undefined;
}

/**
 * Reads the body of a request, and puts it back, so that it can be read again.
 *
 * @returns `undefined` if it is larger than `limit` bytes.
 * @throws ConnectError if it can't be read.
 */
export async function peekBody(body: RequestBody, limit: number): Promise<Uint8Array | undefined> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	let hasEnded = false;
	while (!hasEnded && bytes <= limit) {
		const chunk = body.take();
		if (chunk === undefined) {
			await new Promise<void>((resolve) => body.wait(resolve));
		} else if (chunk === "end") {
			hasEnded = true;
		} else {
			chunks.push(chunk);
			bytes += chunk.byteLength;
		}
	}
	// As one, since a client may send each byte in a chunk of its own.
	const [only] = chunks;
	const taken = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
	if (taken.byteLength > 0) {
		body.putBack(taken);
	}
	return hasEnded ? taken : undefined;
}

/** Decodes a request; `undefined` if it is malformed, compressed, or names no type: servers tell what is wrong with it. */
export function decodeRequest(
	request: HttpRequest,
	method: DescMethod,
	body: Uint8Array,
): CachedRequest | undefined {
	const bytes = messageOf(request, body);
	if (bytes === undefined) {
		return undefined;
	}
	try {
		return decode(method.name as Method, bytes);
	} catch {
		return undefined;
	}
}

function messageOf(request: HttpRequest, body: Uint8Array): Uint8Array | undefined {
	if (formats.get(request.header("content-type") ?? "")?.hasPrefix !== true) {
		return body;
	}
	if (body.byteLength < prefixBytes || body[0] !== 0) {
		return undefined;
	}
	const length = new DataView(body.buffer, body.byteOffset).getUint32(1);
	return body.byteLength === prefixBytes + length ? body.subarray(prefixBytes) : undefined;
}

function decode(method: Method, bytes: Uint8Array): CachedRequest | undefined {
	switch (method) {
		case "Read": {
			const message = decodeRead(bytes);
			return named(message.id?.type, (typeKey) => ({ method, message, typeKey }));
		}
		case "List": {
			const message = decodeList(bytes);
			return named(message.type, (typeKey) => ({ method, message, typeKey }));
		}
		case "WatchList": {
			const message = decodeWatchList(bytes);
			return named(message.type, (typeKey) => ({ method, message, typeKey }));
		}
	}
}

function named(
	type: TypeLike | undefined,
	request: (typeKey: string) => CachedRequest,
): CachedRequest | undefined {
	return type === undefined ? undefined : request(gvkKey(type));
}
