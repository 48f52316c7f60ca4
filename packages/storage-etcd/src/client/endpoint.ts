import type { SecureClientSessionOptions } from "node:http2";
import { type Client, Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { unlessAborted } from "@plinth/runtime";
import { Auth, KV, Lease, Watch } from "../gen/etcdserverpb/rpc_pb.ts";
import { EtcdError } from "./etcd-error.ts";
import type { EtcdTls } from "./etcd-options.ts";

/** etcd drops clients that ping more often than every 5 seconds. */
const pingIntervalMs = 8000;
const pingTimeoutMs = 4000;

/** The flow control window: with 64 KiB, a link with 30 ms latency carries only 2 MB/s. */
const windowBytes = 4 * 1024 * 1024;

/** One member of an etcd cluster: a connection opened on demand, and its services. */
export class Endpoint {
	readonly url: string;
	readonly kv: Client<typeof KV>;
	readonly watch: Client<typeof Watch>;
	readonly lease: Client<typeof Lease>;
	readonly auth: Client<typeof Auth>;
	readonly #session: Http2SessionManager;

	constructor(url: string, tls: EtcdTls | undefined) {
		this.url = url;
		this.#session = new Http2SessionManager(
			url,
			{ pingIntervalMs, pingTimeoutMs },
			sessionOptions(tls),
		);
		const transport = createGrpcTransport({
			baseUrl: url,
			sessionManager: this.#session,
			acceptCompression: [],
		});
		this.kv = createClient(KV, transport);
		this.watch = createClient(Watch, transport);
		this.lease = createClient(Lease, transport);
		this.auth = createClient(Auth, transport);
	}

	/**
	 * Resolves when there is a connection.
	 *
	 * @throws EtcdError whose outcome is `not-done`.
	 */
	async connect(signal: AbortSignal): Promise<void> {
		let why: unknown;
		try {
			if ((await unlessAborted(this.#session.connect(), signal)) !== "error") {
				return;
			}
			why = this.#session.error();
		} catch (error) {
			why = error;
			if (this.#session.state() === "connecting") {
				this.#session.abort();
			}
		}
		const reason = why instanceof Error ? why.message : String(why);
		throw new EtcdError("not-done", `etcd at ${this.url}: ${reason}`, Code.Unavailable, {
			cause: why,
		});
	}

	/** Ends the connection and all its calls. */
	close(): void {
		this.#session.abort();
	}
}

function sessionOptions(tls: EtcdTls = {}): SecureClientSessionOptions {
	const { ca, cert, key, serverName } = tls;
	return {
		settings: { initialWindowSize: windowBytes },
		...(ca !== undefined && { ca: pem(ca) }),
		...(cert !== undefined && { cert: pem(cert) }),
		...(key !== undefined && { key: pem(key) }),
		...(serverName !== undefined && { servername: serverName }),
	};
}

function pem(value: string | Uint8Array): string | Buffer {
	return typeof value === "string" ? value : Buffer.from(value);
}
