import type { Logger, Runtime } from "@plinth/runtime";

/** How to reach an etcd cluster. */
export interface EtcdOptions {
	/** The members' URLs, as in `http://127.0.0.1:2379`. One that responds is used until it fails. */
	readonly endpoints: readonly string[];
	/** For `https` endpoints. */
	readonly tls?: EtcdTls;
	/** If etcd has authentication enabled. */
	readonly auth?: EtcdUser;
	/**
	 * The prefix of all keys, before a slash; servers that share it form one cluster. `/plinth` by default. No cluster may have
	 * a prefix below that of another one, such as `/plinth/test`.
	 */
	readonly prefix?: string;
	/** How long a request may take, in milliseconds; 5000 by default. */
	readonly requestTimeoutMs?: number;
	/** `systemRuntime` if absent. */
	readonly runtime?: Runtime;
	/** Logs lost and restored connections. */
	readonly logger?: Logger;
}

/** Certificates and keys, in PEM. */
export interface EtcdTls {
	/** The authorities to trust; those of the system by default. */
	readonly ca?: string | Uint8Array;
	/** The certificate of the client, if etcd requires one. */
	readonly cert?: string | Uint8Array;
	/** The key of `cert`. */
	readonly key?: string | Uint8Array;
	/** The name that the certificate must be for; the endpoint's host by default. */
	readonly serverName?: string;
}

/** A user of etcd. */
export interface EtcdUser {
	readonly user: string;
	/** A function is called for each requested token, so that a changed password takes effect. */
	readonly password: string | (() => Promise<string>);
}

/** The default prefix. */
export const defaultPrefix = "/plinth";

/** The default timeout of a request, in milliseconds. */
export const defaultRequestTimeoutMs = 5000;
