import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouterOptions, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import { serveStream } from "./call/serve-stream.ts";
import { serveUnary } from "./call/serve-unary.ts";
import type { Serve } from "./call/served-call.ts";
import { type CodecOptions, type Codecs, createCodecs } from "./messages/codec.ts";
import { connectStreamProtocol } from "./protocols/connect-stream.ts";
import { connectUnaryProtocol } from "./protocols/connect-unary.ts";
import { grpcProtocol } from "./protocols/grpc.ts";
import { grpcWebProtocol } from "./protocols/grpc-web.ts";
import type { Protocol } from "./protocols/protocol.ts";

/** Options of a registration, with their defaults. */
export interface RouteOptions
	extends CodecOptions,
		Pick<ConnectRouterOptions, "requestGate" | "requireConnectProtocolHeader"> {
	readonly maxTimeoutMs: number;
	readonly interceptors: readonly Interceptor[];
	/** Whether responses are never compressed. */
	readonly isUncompressed: boolean;
}

/** Which protocols a registration serves. */
export type ServedProtocols = Pick<ConnectRouterOptions, "grpc" | "grpcWeb" | "connect">;

/** A method that this package serves itself. */
export interface Route {
	readonly method: DescMethod;
	readonly options: RouteOptions;
	readonly codecs: Codecs;
	readonly serve: Serve;
	/** The protocols, by the content types of their requests. */
	readonly protocols: ReadonlyMap<string, Protocol>;
	/** The protocols of a GET, by the encoding in its query. */
	readonly queryProtocols: ReadonlyMap<string, Protocol>;
}

/** The spellings of content types that clients use. Requests with others are left to Connect. */
const charsets = ["", "; charset=utf-8", ";charset=utf-8"];

/** The route of a method; `undefined` if its kind is left to Connect. */
export function routeOf(
	spec: MethodImplSpec,
	options: RouteOptions,
	served: ServedProtocols,
): Route | undefined {
	const serve = serviceOf(spec, options);
	if (serve === undefined) {
		return undefined;
	}
	const protocols = new Map<string, Protocol>();
	const queryProtocols = new Map<string, Protocol>();
	const add = (prefix: string, protocolOf: (isBinary: boolean) => Protocol) => {
		const binary = protocolOf(true);
		const json = protocolOf(false);
		protocols.set(`${prefix}proto`, binary);
		for (const charset of charsets) {
			protocols.set(`${prefix}json${charset}`, json);
		}
		return { binary, json };
	};
	if (served.grpc !== false) {
		protocols.set("application/grpc", add("application/grpc+", grpcProtocol).binary);
	}
	if (served.grpcWeb !== false) {
		protocols.set("application/grpc-web", add("application/grpc-web+", grpcWebProtocol).binary);
	}
	if (served.connect !== false) {
		if (spec.kind === "unary") {
			const { binary, json } = add("application/", (isBinary) =>
				connectUnaryProtocol(isBinary, options),
			);
			queryProtocols.set("proto", binary);
			queryProtocols.set("json", json);
		} else {
			add("application/connect+", (isBinary) => connectStreamProtocol(isBinary, options));
		}
	}
	const { method } = spec;
	return {
		method,
		options,
		codecs: createCodecs(method, options),
		serve,
		protocols,
		queryProtocols,
	};
}

/** Interceptors of streams see the request before its message, as a stream of its own: they are left to Connect. */
function serviceOf(spec: MethodImplSpec, { interceptors }: RouteOptions): Serve | undefined {
	switch (spec.kind) {
		case "unary":
			return serveUnary(spec);
		case "server_streaming":
			return interceptors.length === 0 ? serveStream(spec) : undefined;
		default:
			return undefined;
	}
}
