import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import {
	type Clock,
	type Logger,
	silentLogger,
	sleep,
	systemRuntime,
	unlessAborted,
} from "@plinth/runtime";
import type {
	RangeRequestSchema,
	RangeResponse,
	ResponseHeader,
	TxnRequest,
	TxnRequestSchema,
	TxnResponse,
	WatchResponse,
} from "../gen/etcdserverpb/rpc_pb.ts";
import { deadline } from "./deadline.ts";
import { Endpoint } from "./endpoint.ts";
import { EtcdError, etcdError, isStaleToken, RevisionCompacted } from "./etcd-error.ts";
import { defaultRequestTimeoutMs, type EtcdOptions } from "./etcd-options.ts";
import { StorePosition } from "./store-position.ts";
import { Token } from "./token.ts";
import { type WatchInit, watchStream } from "./watch-stream.ts";

/** How long to wait before another attempt, in milliseconds. */
const retryAfterMs = 100;
/** The minimum time that one member has to respond to a read, in milliseconds. */
const leastAttemptMs = 1000;

/** A client of an etcd cluster that uses any member that responds. */
export class EtcdClient {
	readonly #endpoints: readonly Endpoint[];
	/** The known position of the cluster. */
	readonly position = new StorePosition();
	readonly #token: Token;
	readonly #clock: Clock;
	readonly #logger: Logger;
	readonly #closed = new AbortController();
	readonly #requestTimeoutMs: number;
	/** The index of the member that calls go to. */
	#current = 0;
	/** Members whose last call failed; each is logged once. */
	readonly #failing = new Set<Endpoint>();

	constructor(options: EtcdOptions) {
		const { endpoints, tls, auth, runtime = systemRuntime, logger = silentLogger } = options;
		if (endpoints.length === 0) {
			throw new RangeError("etcd needs at least one endpoint, as in http://127.0.0.1:2379");
		}
		this.#endpoints = endpoints.map((url) => new Endpoint(url, tls));
		this.#token = new Token(auth, runtime.clock);
		this.#clock = runtime.clock;
		this.#logger = logger;
		this.#requestTimeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
	}

	/**
	 * Reads, at any member that responds.
	 *
	 * @throws EtcdError; RevisionCompacted; OtherCluster; WentBack.
	 */
	range(
		request: MessageInitShape<typeof RangeRequestSchema>,
		signal?: AbortSignal,
	): Promise<RangeResponse> {
		return this.#checked(
			this.#repeat((endpoint, options) => endpoint.kv.range(request, options), signal),
		);
	}

	/**
	 * Runs a read-only transaction, at any member that responds.
	 *
	 * @throws EtcdError; RevisionCompacted; OtherCluster; WentBack.
	 */
	readTransaction(
		request: MessageInitShape<typeof TxnRequestSchema>,
		signal?: AbortSignal,
	): Promise<TxnResponse> {
		return this.#checked(
			this.#repeat((endpoint, options) => endpoint.kv.txn(request, options), signal),
		);
	}

	/**
	 * Runs a transaction, which is sent at most once.
	 *
	 * @throws EtcdError, whose outcome says whether it may have been applied; OtherCluster; WentBack.
	 */
	transaction(request: TxnRequest, signal?: AbortSignal): Promise<TxnResponse> {
		return this.#checked(
			this.#once((endpoint, options) => endpoint.kv.txn(request, options), signal),
		);
	}

	/**
	 * Compacts all revisions before the given one, and waits for it.
	 *
	 * @throws EtcdError
	 */
	async compact(revision: bigint, signal?: AbortSignal): Promise<void> {
		await this.#once(
			(endpoint, options) => endpoint.kv.compact({ revision, physical: true }, options),
			signal,
		);
	}

	/**
	 * Grants a lease, and returns its id. If the response is lost, the lease expires.
	 *
	 * @throws EtcdError
	 */
	async grantLease(ttlSeconds: number, signal?: AbortSignal): Promise<bigint> {
		const { ID } = await this.#once(
			(endpoint, options) => endpoint.lease.leaseGrant({ TTL: BigInt(ttlSeconds) }, options),
			signal,
		);
		return ID;
	}

	/**
	 * Revokes a lease. It is not an error if the lease has expired.
	 *
	 * @throws EtcdError
	 */
	async revokeLease(lease: bigint, signal?: AbortSignal): Promise<void> {
		try {
			await this.#repeat(
				(endpoint, options) => endpoint.lease.leaseRevoke({ ID: lease }, options),
				signal,
			);
		} catch (error) {
			if (!(error instanceof EtcdError && error.code === Code.NotFound)) {
				throw error;
			}
		}
	}

	/**
	 * Renews a lease; returns whether it still existed.
	 *
	 * @throws EtcdError
	 */
	keepLeaseAlive(lease: bigint, signal?: AbortSignal): Promise<boolean> {
		return this.#repeat(async (endpoint, options) => {
			const requests = [{ ID: lease }];
			for await (const { TTL } of endpoint.lease.leaseKeepAlive(iterate(requests), options)) {
				return TTL > 0n;
			}
			throw new ConnectError("the stream ended without a response", Code.Unavailable);
		}, signal);
	}

	/**
	 * Follows a watch at one member until that fails, stops responding or lags behind the cluster; the next call uses another
	 * member.
	 *
	 * @throws EtcdError; RevisionCompacted; the signal's reason.
	 */
	async *watch(
		request: WatchInit,
		signal: AbortSignal,
	): AsyncGenerator<WatchResponse, never, undefined> {
		const endpoint = this.#endpoint();
		const stop = AbortSignal.any([signal, this.#closed.signal]);
		try {
			const headers = await this.#connectInTime(endpoint, stop);
			const known = () => this.position.known.revision;
			const options = { headers, signal: stop, known };
			const responses = watchStream(endpoint, request, this.#clock, options);
			for await (const response of responses) {
				this.#responded(endpoint);
				yield response;
			}
			throw new TypeError("a watch ends only with an error");
		} catch (error) {
			signal.throwIfAborted();
			if (error instanceof EtcdError && isAboutToken(error)) {
				this.#token.expired();
			} else if (!(error instanceof RevisionCompacted)) {
				this.#failed(endpoint, error);
			}
			throw error;
		}
	}

	/** Ends all calls and connections. */
	close(): void {
		this.#closed.abort(new Error("the connection to etcd was closed"));
		for (const endpoint of this.#endpoints) {
			endpoint.close();
		}
	}

	/** The response of a call, after checking that the cluster is not at an earlier revision than before. */
	async #checked<T extends { readonly header?: ResponseHeader | undefined }>(
		call: Promise<T>,
	): Promise<T> {
		const before = this.position.known;
		const response = await call;
		this.position.check(before, response.header);
		return response;
	}

	/**
	 * Retries a call until it succeeds, is refused or times out. If a member has received it and did not respond in time, the
	 * error says so, even if the last attempt was at a member that can't be reached.
	 */
	async #repeat<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
		const shareMs = Math.round(this.#requestTimeoutMs / this.#endpoints.length);
		const attemptMs = Math.max(leastAttemptMs, shareMs);
		return this.#attempts(call, attemptMs, (outcome) => outcome !== "refused", signal);
	}

	/** Retries a call only while it was certainly not executed. */
	async #once<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
		return this.#attempts(
			call,
			this.#requestTimeoutMs,
			(outcome) => outcome === "not-done",
			signal,
		);
	}

	async #attempts<T>(
		call: Call<T>,
		attemptMs: number,
		again: (outcome: EtcdError["outcome"]) => boolean,
		signal?: AbortSignal,
	): Promise<T> {
		using total = deadline(this.#clock, this.#requestTimeoutMs, signal);
		let late: EtcdError | undefined;
		for (;;) {
			try {
				return await this.#attempt(call, attemptMs, total.signal);
			} catch (error) {
				signal?.throwIfAborted();
				const canRetry = error instanceof EtcdError && again(error.outcome);
				if (!canRetry || this.#closed.signal.aborted) {
					throw error;
				}
				late = isLate(error) ? error : late;
				const failure = error.outcome === "not-done" ? (late ?? error) : error;
				if (total.signal.aborted) {
					throw failure;
				}
				await this.#pause(total.signal).catch(() => {
					signal?.throwIfAborted();
					throw failure;
				});
			}
		}
	}

	/** Waits before another attempt. Timers of a clock do not keep the process alive, but a call must. */
	async #pause(signal: AbortSignal): Promise<void> {
		const held = setInterval(() => {}, 2 ** 30);
		try {
			await sleep(this.#clock, retryAfterMs, signal);
		} finally {
			clearInterval(held);
		}
	}

	async #attempt<T>(call: Call<T>, attemptMs: number, signal: AbortSignal): Promise<T> {
		const endpoint = this.#endpoint();
		using attempt = deadline(this.#clock, attemptMs, signal);
		const stop = attempt.signal;
		try {
			const headers = await this.#connect(endpoint, stop);
			const response = await call(endpoint, { signal: stop, headers });
			this.#responded(endpoint);
			return response;
		} catch (reason) {
			const error =
				reason instanceof EtcdError ? reason : etcdError(stop.aborted ? stop.reason : reason);
			if (reason instanceof ConnectError && isStaleToken(reason)) {
				this.#token.expired();
			} else if (error instanceof EtcdError && error.outcome !== "refused") {
				this.#failed(endpoint, error);
			}
			throw error;
		}
	}

	async #connectInTime(endpoint: Endpoint, signal: AbortSignal): Promise<Record<string, string>> {
		using within = deadline(this.#clock, this.#requestTimeoutMs, signal);
		return await this.#connect(endpoint, within.signal);
	}

	/**
	 * Ensures a connection, and returns the headers of every call on it.
	 *
	 * @throws EtcdError, whose outcome is never `unknown`: the call was not sent.
	 */
	async #connect(endpoint: Endpoint, signal: AbortSignal): Promise<Record<string, string>> {
		await endpoint.connect(signal);
		try {
			const token = await unlessAborted(this.#token.get(endpoint), signal);
			// A member without a leader then fails at once, instead of waiting for one.
			return { hasleader: "true", ...(token !== undefined && { token }) };
		} catch (reason) {
			if (reason instanceof EtcdError) {
				throw reason;
			}
			const error = etcdError(signal.aborted ? signal.reason : reason);
			if (error instanceof EtcdError && error.outcome === "unknown") {
				throw new EtcdError("not-done", error.message, error.code, { cause: error });
			}
			throw error;
		}
	}

	#endpoint(): Endpoint {
		// The index is kept within the list, which is not empty.
		return this.#endpoints[this.#current]!;
	}

	/** Switches to the next member, unless another call has done so. */
	#failed(endpoint: Endpoint, error: unknown): void {
		if (this.#closed.signal.aborted) {
			return;
		}
		if (this.#endpoint() === endpoint) {
			this.#current = (this.#current + 1) % this.#endpoints.length;
		}
		if (!this.#failing.has(endpoint)) {
			this.#failing.add(endpoint);
			const why = error instanceof Error ? error.message : String(error);
			this.#logger.warn({ endpoint: endpoint.url, why }, "etcd does not respond");
		}
	}

	#responded(endpoint: Endpoint): void {
		if (this.#failing.delete(endpoint)) {
			this.#logger.info({ endpoint: endpoint.url }, "etcd responds again");
		}
	}
}

type Call<T> = (endpoint: Endpoint, options: CallOptions) => Promise<T>;

async function* iterate<T>(items: Iterable<T>): AsyncGenerator<T, void, undefined> {
	yield* items;
}

/** Whether a member has received the call, and did not respond in time. */
function isLate({ outcome, code }: EtcdError): boolean {
	return outcome === "unknown" && code === Code.DeadlineExceeded;
}

/** Whether etcd ended a watch because of the token, which only the message says. */
function isAboutToken({ code, message }: EtcdError): boolean {
	return (
		code === Code.Unauthenticated ||
		/invalid auth token|revision of auth store is old|permission denied/.test(message)
	);
}
