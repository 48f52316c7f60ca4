import type { Logger, Runtime } from "@plinth/runtime";

/** How to reach an etcd cluster. */
export interface EtcdOptions {
	/** The members' URLs, as in `http://127.0.0.1:2379`. One that answers is used, and left when it stops. */
	readonly endpoints: readonly string[];
	/** For `https` endpoints. */
	readonly tls?: EtcdTls;
	/** Where etcd has authentication enabled. */
	readonly auth?: EtcdUser;
	/** What all keys begin with, before a slash; servers that share it are one cluster. `/plinth` by default. */
	readonly prefix?: string;
	/** How long a request may take, in milliseconds; 5000 by default. */
	readonly requestTimeoutMs?: number;
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
	/** Receives connections that are lost and found. */
	readonly log?: Logger;
}

/** Certificates and keys, in PEM. */
export interface EtcdTls {
	/** Whose certificates to trust; the system's authorities by default. */
	readonly ca?: string | Uint8Array;
	/** The client's own certificate, where etcd asks for one. */
	readonly cert?: string | Uint8Array;
	/** The key of `cert`. */
	readonly key?: string | Uint8Array;
	/** The name that the certificate must be for; the endpoint's host by default. */
	readonly serverName?: string;
}

/** A user of etcd. */
export interface EtcdUser {
	readonly user: string;
	/** A function is called for each token that is requested, so that a changed password takes effect. */
	readonly password: string | (() => Promise<string>);
}

/** The prefix that holds unless another is given. */
export const defaultPrefix = "/plinth";

/** How long a request may take unless told otherwise, in milliseconds. */
export const defaultRequestTimeoutMs = 5000;
