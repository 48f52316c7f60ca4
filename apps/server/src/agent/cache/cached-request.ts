import { type DescMethod, fromBinary } from "@bufbuild/protobuf";
import {
	ListRequestSchema,
	ReadRequestSchema,
	ResourceService,
	WatchListRequestSchema,
	WatchSetRequestSchema,
} from "@plinth/proto";
import { gvkKey, type TypeLike } from "@plinth/resource";
import { consistencyHeader, notBeforeHeader } from "@plinth/resource-service";
import { wildcard } from "@plinth/storage";
import type { RequestBody } from "../../listener/request-body.ts";
import { type HttpRequest, pathOf } from "../../listener/request-handler.ts";

/** What a call reads, or one of the watches of a set. */
export interface CachedQuery {
	readonly typeKey: string;
	/** Whether it names one region, which may be that of the servers. */
	readonly namesRegion: boolean;
	/** The version that a watch resumes after; otherwise empty. */
	readonly afterVersion: string;
}

/** The request of a call that a cache may serve. */
export type CachedRequest = {
	/** One for each watch of a set, in their order; one for other calls. */
	readonly queries: readonly CachedQuery[];
} & (
	| { readonly method: "Read" | "WatchList" | "WatchSet" }
	| { readonly method: "List"; readonly pageToken: string }
);

type Method = CachedRequest["method"];

const { read, list, watchList, watchSet } = ResourceService.method;

const methods: ReadonlyMap<string, DescMethod & { readonly name: string }> = new Map(
	[read, list, watchList, watchSet].map((method) => [
		`/${ResourceService.typeName}/${method.name}`,
		method,
	]),
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
	const number = /^(?:0|[1-9]\d{0,15})?$/.test(version) ? Number(version) : Number.NaN;
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
			const { id } = fromBinary(ReadRequestSchema, bytes);
			return withQueries({ method }, [{ type: id?.type, region: id?.region ?? "" }]);
		}
		case "List": {
			const { type, region, pageToken } = fromBinary(ListRequestSchema, bytes);
			return withQueries({ method, pageToken }, [{ type, region }]);
		}
		case "WatchList":
			return withQueries({ method }, [fromBinary(WatchListRequestSchema, bytes)]);
		case "WatchSet": {
			const { watches } = fromBinary(WatchSetRequestSchema, bytes);
			return withQueries(
				{ method },
				watches.map(({ request }) => request),
			);
		}
	}
}

/** A message that names a type and a region. */
interface Typed {
	readonly type?: TypeLike | undefined;
	readonly region: string;
	readonly afterVersion?: string;
}

/** Returns `undefined` if a type is missing, or if there is none. */
function withQueries<Method>(
	method: Method,
	messages: readonly (Typed | undefined)[],
): (Method & { readonly queries: readonly CachedQuery[] }) | undefined {
	const queries = messages.flatMap((message) =>
		message?.type === undefined
			? []
			: [
					{
						typeKey: gvkKey(message.type),
						namesRegion: message.region !== "" && message.region !== wildcard,
						afterVersion: message.afterVersion ?? "",
					},
				],
	);
	return queries.length === messages.length && queries.length > 0
		? { ...method, queries }
		: undefined;
}
