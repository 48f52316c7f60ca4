import type { TracerProvider } from "@opentelemetry/api";
import type { IMetricReader } from "@opentelemetry/sdk-metrics";
import type { Authorizer } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { ListenAddress } from "./configuration/listen-address.ts";
import type { DeploymentOptions } from "./deployment/deployment-options.ts";
import type { CallLimits } from "./limits/call-limits.ts";
import type { ListenerLimits } from "./listener/limits.ts";
import type { TlsFiles } from "./listener/tls/tls-files.ts";
import type { Module } from "./module/define-module.ts";
import type { AccessOptions } from "./security/access-options.ts";
import type { StorageChoice } from "./storage/open-storage.ts";

/** Options of a server. */
export interface ServerOptions {
	readonly storage: StorageChoice;
	/** 127.0.0.1:7575 where it is absent; port 0 takes a free one. */
	readonly listen?: ListenAddress;
	readonly modules?: readonly Module[];
	/** What all resources together may take, in bytes; no limit where it is absent. */
	readonly memoryLimitBytes?: number;
	/** Files that make the listener speak TLS. They are followed. */
	readonly tls?: TlsFiles;
	/**
	 * Who may do what of those who call through the listener. Without it, and without `authorizer`,
	 * everyone who reaches the port has full rights.
	 */
	readonly access?: AccessOptions;
	/** Decides in place of `access`. */
	readonly authorizer?: Authorizer;
	/** Listen beyond this machine although everyone has full rights. */
	readonly allowAnonymous?: boolean;
	/**
	 * Host names under which programs reach the server, besides `localhost` and IP addresses. Without tokens,
	 * requests with any other Host are refused; with tokens they are only where this is given.
	 */
	readonly allowedHosts?: readonly string[];
	/** Web pages that may call the server. */
	readonly cors?: CorsOptions;
	/** Which deployment this is; references reach no further than this server where it is absent. */
	readonly deployment?: DeploymentOptions;
	/**
	 * What a server does whose storage failed: `exit`, the default, stops it after `stopLimitMs`, and `ended`
	 * rejects; `stay` keeps it up, not ready and without writes, for inspection.
	 */
	readonly onStorageFailure?: "exit" | "stay";
	readonly runtime?: Runtime;
	readonly logger?: Logger;
	/** Limits that differ from `defaultListenerLimits`. */
	readonly limits?: Partial<ListenerLimits>;
	/** Limits that differ from `defaultCallLimits`. */
	readonly callLimits?: Partial<CallLimits>;
	/** Who makes the spans of traces; none are made where it is absent. */
	readonly tracerProvider?: TracerProvider;
	/** Who else reads the metrics, besides `/metrics`. */
	readonly metricReaders?: readonly IMetricReader[];
	/** How long running calls may take to finish when the server stops; 10 s where it is absent. */
	readonly stopLimitMs?: number;
}

/** What web pages may do. */
export interface CorsOptions {
	/** Origins of pages other than the server's own, as `https://console.example`. */
	readonly allowedOrigins: readonly string[];
}

/** Where a server listens that is not told where. */
export const defaultListen: ListenAddress = { host: "127.0.0.1", port: 7575 };

/** What running calls get to finish when a server stops that is not told otherwise, in milliseconds. */
export const defaultStopLimitMs = 10_000;
