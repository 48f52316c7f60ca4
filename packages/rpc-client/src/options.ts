import type { ClientSessionOptions, SecureClientSessionOptions } from "node:http2";
import type { BinaryReadOptions, BinaryWriteOptions } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { Clock, Random } from "@plinth/runtime";

/** Options of the connections to a server, named as those of connect-node's `Http2SessionManager`. */
export interface ConnectionOptions {
	/**
	 * A connection with open calls on which nothing has arrived for that long is pinged, and one that was
	 * not used for longer is pinged before the next call. In milliseconds; without it there are no pings.
	 */
	readonly pingIntervalMs?: number;
	/** A connection that does not respond to a ping within that time is dead. 15 seconds by default. */
	readonly pingTimeoutMs?: number;
	/** Whether connections without open calls are pinged too. They are not by default. */
	readonly pingIdleConnection?: boolean;
	/** Connections without open calls are closed after that time. 15 minutes by default. */
	readonly idleConnectionTimeoutMs?: number;
	/** For `http2.connect`: TLS certificates, HTTP/2 settings. */
	readonly nodeOptions?: ClientSessionOptions | SecureClientSessionOptions;
}

/** The options of `createPlinthTransport`. */
export interface PlinthTransportOptions extends ConnectionOptions {
	/** The address of the server, such as `https://plinth.example:7575`. A path is prepended to those of methods. */
	readonly baseUrl: string;
	/** The first one outermost. */
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
	/** For the jitter of delays before another attempt to connect. */
	readonly random?: Random;
}
