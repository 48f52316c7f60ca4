import type { TracerProvider } from "@opentelemetry/api";
import type { IMetricReader } from "@opentelemetry/sdk-metrics";
import type { Authorizer } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { AgentsOptions } from "./agents-listener/agents-options.ts";
import type { ListenAddress } from "./configuration/listen-address.ts";
import type { DeploymentOptions } from "./deployment/deployment-options.ts";
import type { CallLimits } from "./limits/call-limits.ts";
import type { Http2Implementation } from "./listener/http2/http2-server.ts";
import type { ListenerLimits } from "./listener/limits.ts";
import type { TlsFiles } from "./listener/tls/tls-files.ts";
import type { Module } from "./module/define-module.ts";
import type { AccessOptions } from "./security/access-options.ts";
import type { StorageOptions } from "./storage/open-storage.ts";

/** Options of a server. */
export interface ServerOptions {
	readonly storage: StorageOptions;
	/** 127.0.0.1:7575 by default; port 0 selects a free port. */
	readonly listen?: ListenAddress;
	/**
	 * The URL at which the other servers of the cluster reach the listener, such as `http://10.0.0.1:7575`. By default, that
	 * of the address on which it listens or, if that is a wildcard, the host name and the port.
	 */
	readonly advertisedAddress?: string;
	readonly modules?: readonly Module[];
	/** The limit on the memory of all resources, in bytes; unlimited by default. */
	readonly memoryLimitBytes?: number;
	/** Files that make the listener speak TLS. They are read again when they change. */
	readonly tls?: TlsFiles;
	/**
	 * The rights of callers of the listener. Without it and without `authorizer`, every caller has full rights.
	 */
	readonly access?: AccessOptions;
	/** Authorizes calls in place of `access`. */
	readonly authorizer?: Authorizer;
	/** Accept connections from other machines although every caller has full rights. */
	readonly allowAnonymous?: boolean;
	/**
	 * Host names of the server, in addition to `localhost` and IP addresses. Requests with any other Host are
	 * refused if there are no tokens, or if this option is set.
	 */
	readonly allowedHosts?: readonly string[];
	/** The web pages that may call the server. */
	readonly cors?: CorsOptions;
	/** A port for agents, whose clients are then told apart by their addresses. */
	readonly agents?: AgentsOptions;
	/** The deployment that this server is; without it, references stay within this server. */
	readonly deployment?: DeploymentOptions;
	/**
	 * What to do after the storage has failed: `exit`, the default, stops the server after `stopLimitMs`, and `ended`
	 * rejects; `stay` keeps it running for inspection, not ready and without writes.
	 */
	readonly onStorageFailure?: "exit" | "stay";
	/** Whether the listener serves the console at `/console/`; true by default. */
	readonly console?: boolean;
	/** What serves HTTP/2: `node`, the default, is `node:http2`; `plinth` is `@plinth/http2`. */
	readonly http2?: Http2Implementation;
	readonly runtime?: Runtime;
	/** By default, warnings and errors are written to standard error. */
	readonly logger?: Logger;
	/** Limits that differ from `defaultListenerLimits`. */
	readonly limits?: Partial<ListenerLimits>;
	/** Limits that differ from `defaultCallLimits`. */
	readonly callLimits?: Partial<CallLimits>;
	/** Creates the spans of traces; the global provider by default. */
	readonly tracerProvider?: TracerProvider;
	/** Further readers of metrics, in addition to `/metrics`. */
	readonly metricReaders?: readonly IMetricReader[];
	/** How long running calls may continue when the server stops; 10 s by default. */
	readonly stopLimitMs?: number;
	/**
	 * The start waits for it when the options and the modules are known to be valid, before the storage is opened: a
	 * server that replaces another one opens the storage once that one has closed it. If it rejects, so does the start.
	 */
	readonly beforeStorage?: () => Promise<void>;
}

/** Access for web pages. */
export interface CorsOptions {
	/** Origins of pages other than the server's own, such as `https://console.example`. */
	readonly allowedOrigins: readonly string[];
}

/** The default of `ServerOptions.listen`. */
export const defaultListen: ListenAddress = { host: "127.0.0.1", port: 7575 };

/** The default of `ServerOptions.stopLimitMs`. */
export const defaultStopLimitMs = 10_000;
