import type { CallOptions, HandlerContext, Transport } from "@connectrpc/connect";

/** A server of a cluster, as reports name it. */
export interface ReportingServer {
	readonly name: string;
	/** The URL at which the other servers reach it. */
	readonly address: string;
	/** When it was started, in milliseconds since the epoch. */
	readonly startedAtMs: number;
	/** The version of Plinth. */
	readonly version: string;
}

/** A report of one server. */
export interface ServerReport<T> {
	/** `undefined` if it has no name. */
	readonly server: ReportingServer | undefined;
	/** `undefined` if it is missing, or the server does not have what was asked for. */
	readonly response: T | undefined;
	/** Why the report is missing, for people, after the name of the server; `undefined` if it is not. */
	readonly missing?: string;
}

/** Asks a server for a report on itself alone. Resolves to `undefined` if it does not have what is asked for. */
export type ReportQuestion<T> = (
	transport: Transport,
	options: CallOptions,
) => Promise<T | undefined>;

/** The part of a call that questions to other servers need: who calls, with which credentials, and how long it waits. */
export type ReportCall = Pick<HandlerContext, "requestHeader" | "signal" | "timeoutMs" | "values">;

/** The servers of a cluster, all of which report on themselves. */
export interface ReportingCluster {
	/** This server. */
	readonly own: ReportingServer;
	/**
	 * Asks all other live servers at the same time, with the credentials of the call, for a bounded time. A server that can't
	 * be reached, or refuses, has a report that is missing.
	 */
	askOthers<T>(call: ReportCall, question: ReportQuestion<T>): Promise<readonly ServerReport<T>[]>;
}
