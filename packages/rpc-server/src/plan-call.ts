import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import type { RequestHead } from "./carrier.ts";
import type { PlannedCall } from "./plan.ts";
import type { Protocol } from "./protocols/protocol.ts";
import type { Route } from "./route.ts";

/**
 * The plan for a call, from its head alone; `undefined` if it is left to Connect: a request that is compressed, whose
 * response would be compressed, or whose head is malformed or unusual.
 */
export function planCall(route: Route, head: RequestHead): PlannedCall | undefined {
	if (head.method === "GET") {
		return planGet(route, head);
	}
	const contentType = head.header("content-type");
	const protocol =
		head.method === "POST" && contentType !== undefined
			? route.protocols.get(contentType)
			: undefined;
	if (
		protocol === undefined ||
		isCompressed(protocol, head) ||
		offersCompression(route, head.header(`${encodingPrefix(protocol)}accept-encoding`)) ||
		(protocol.name === "connect" && lacksVersion(route, head))
	) {
		return undefined;
	}
	return withTimeout(route, protocol, head, undefined);
}

function planGet(route: Route, head: RequestHead): PlannedCall | undefined {
	if (
		route.method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ||
		head.header("content-type") !== undefined ||
		// In a URL, the query ends there.
		head.target.includes("#")
	) {
		return undefined;
	}
	const query = new URLSearchParams(head.target.slice(head.target.indexOf("?") + 1));
	const protocol = route.queryProtocols.get(query.get("encoding") ?? "");
	if (
		protocol === undefined ||
		query.has("compression") ||
		offersCompression(route, head.header("accept-encoding")) ||
		(route.options.requireConnectProtocolHeader === true && query.get("connect") !== "v1")
	) {
		return undefined;
	}
	const text = query.get("message") ?? "";
	const isBase64 = query.get("base64") === "1";
	if (isBase64 && !base64.test(text)) {
		return undefined;
	}
	const decode = () => new Uint8Array(Buffer.from(text, isBase64 ? "base64" : "utf8"));
	return withTimeout(route, protocol, head, decode);
}

/** Either alphabet, as decoders accept both, and optional padding. */
const base64 = /^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2,3}={0,2})?$/;

function withTimeout(
	route: Route,
	protocol: Protocol,
	head: RequestHead,
	query: (() => Uint8Array) | undefined,
): PlannedCall | undefined {
	const isConnect = protocol.name === "connect";
	const value = head.header(isConnect ? "connect-timeout-ms" : "grpc-timeout");
	if (value === undefined) {
		return { route, protocol, timeoutMs: undefined, query };
	}
	const parse = isConnect ? parseConnectTimeout : parseGrpcTimeout;
	const { timeoutMs, error } = parse(value, route.options.maxTimeoutMs);
	return error === undefined ? { route, protocol, timeoutMs, query } : undefined;
}

function isCompressed(protocol: Protocol, head: RequestHead): boolean {
	const content = protocol.name === "connect" ? "content-" : "";
	const encoding = head.header(`${encodingPrefix(protocol)}${content}encoding`);
	return encoding !== undefined && encoding !== "identity";
}

function encodingPrefix({ name, isEnveloped }: Protocol): string {
	return name === "connect" ? (isEnveloped ? "connect-" : "") : "grpc-";
}

function offersCompression({ options }: Route, accepted: string | undefined): boolean {
	return !options.isUncompressed && accepted !== undefined && accepted !== "";
}

function lacksVersion({ options }: Route, head: RequestHead): boolean {
	return (
		options.requireConnectProtocolHeader === true && head.header("connect-protocol-version") !== "1"
	);
}
