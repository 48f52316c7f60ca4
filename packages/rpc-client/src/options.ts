import type { ConnectionOptions as TlsOptions } from "node:tls";
import type { BinaryReadOptions, BinaryWriteOptions } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { Clock, Random } from "@plinth/runtime";

/** Options of the connections to a server, with the names of connect-node's `Http2SessionManager` options. */
export interface ConnectionOptions {
	/**
	 * A connection with open calls on which nothing has arrived for this time is pinged, and one that was
	 * unused for longer is pinged before the next call. In milliseconds; if absent, there are no pings.
	 */
	readonly pingIntervalMs?: number;
	/** A connection that does not respond to a ping within this time is dead. In milliseconds; 15 seconds by default. */
	readonly pingTimeoutMs?: number;
	/** Whether connections without open calls are pinged too. They are not by default. */
	readonly pingIdleConnection?: boolean;
	/** Connections without open calls are closed after this time. In milliseconds; 15 minutes by default. */
	readonly idleConnectionTimeoutMs?: number;
	/** Options for `tls.connect`, such as certificates. They have no effect without TLS. */
	readonly nodeOptions?: TlsOptions;
}

/** The options of `createPlinthTransport`. */
export interface PlinthTransportOptions extends ConnectionOptions {
	/** The address of the server, such as `https://plinth.example:7575`. If it has a path, methods are called below it. */
	readonly baseUrl: string;
	/**
	 * Headers of every call, such as credentials, by their names in lower case. A header of a call replaces the one of its
	 * name. For headers that never change, this is cheaper than an interceptor.
	 */
	readonly headers?: Readonly<Record<string, string>>;
	/** The first is the outermost. */
	readonly interceptors?: readonly Interceptor[];
	/** The timeout of calls that set none, in milliseconds. None by default. */
	readonly defaultTimeoutMs?: number;
	/** A larger message in a response fails its call with ResourceExhausted. In bytes; 4 GiB - 1 by default. */
	readonly readMaxBytes?: number;
	/** A larger message in a request fails its call with ResourceExhausted. In bytes; 4 GiB - 1 by default. */
	readonly writeMaxBytes?: number;
	readonly binaryOptions?: Partial<BinaryReadOptions & BinaryWriteOptions>;
	/** The clock of deadlines, pings and delays. The system clock by default. */
	readonly clock?: Clock;
	/** The source of jitter in the delays between attempts to connect. */
	readonly random?: Random;
}
