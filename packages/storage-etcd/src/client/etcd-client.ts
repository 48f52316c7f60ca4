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
/** The least time that one member is given to answer a read, in milliseconds. */
const leastAttemptMs = 1000;

/** Calls to an etcd cluster, through whichever member answers. */
export class EtcdClient {
	readonly #endpoints: readonly Endpoint[];
	/** How far the cluster is known to be. */
	readonly position = new StorePosition();
	readonly #token: Token;
	readonly #clock: Clock;
	readonly #log: Logger;
	readonly #closed = new AbortController();
	readonly #requestTimeoutMs: number;
	/** The index of the member that calls go to. */
	#current = 0;
	/** Members whose last call failed; each is logged once. */
	readonly #failing = new Set<Endpoint>();

	constructor(options: EtcdOptions) {
		const { endpoints, tls, auth, runtime = systemRuntime, log = silentLogger } = options;
		if (endpoints.length === 0) {
			throw new RangeError("etcd needs at least one endpoint, as in http://127.0.0.1:2379");
		}
		this.#endpoints = endpoints.map((url) => new Endpoint(url, tls));
		this.#token = new Token(auth, runtime.clock);
		this.#clock = runtime.clock;
		this.#log = log;
		this.#requestTimeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
	}

	/**
	 * Reads, at any member that answers.
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
	 * A transaction that only reads, at any member that answers.
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
	 * A transaction that is sent once at most.
	 *
	 * @throws EtcdError, whose outcome says whether it may have landed; OtherCluster; WentBack.
	 */
	transaction(request: TxnRequest, signal?: AbortSignal): Promise<TxnResponse> {
		return this.#checked(
			this.#once((endpoint, options) => endpoint.kv.txn(request, options), signal),
		);
	}

	/**
	 * Makes etcd forget what is older than a revision, and waits until it has.
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
	 * Makes a lease, and returns its id. One that is never heard of ends by itself.
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
	 * Ends a lease. One that has ended already is no error.
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
	 * Starts the time of a lease again; answers whether there was any left of it.
	 *
	 * @throws EtcdError
	 */
	keepLeaseAlive(lease: bigint, signal?: AbortSignal): Promise<boolean> {
		return this.#repeat(async (endpoint, options) => {
			const requests = [{ ID: lease }];
			for await (const { TTL } of endpoint.lease.leaseKeepAlive(iterate(requests), options)) {
				return TTL > 0n;
			}
			throw new ConnectError("the stream ended without an answer", Code.Unavailable);
		}, signal);
	}

	/**
	 * Follows a watch at one member, until that fails or falls silent: the next call goes to another.
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
			const responses = watchStream(endpoint, request, this.#clock, { headers, signal: stop });
			for await (const response of responses) {
				this.#answered(endpoint);
				yield response;
			}
			throw new TypeError("a watch ends by an error only");
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

	/** Ends everything that is under way, and the connections. */
	close(): void {
		this.#closed.abort(new Error("the connection to etcd was closed"));
		for (const endpoint of this.#endpoints) {
			endpoint.close();
		}
	}

	/** The answer to a call that has just been made, where the cluster has not gone back. */
	async #checked<T extends { readonly header?: ResponseHeader | undefined }>(
		call: Promise<T>,
	): Promise<T> {
		const before = this.position.known;
		const answer = await call;
		this.position.check(before, answer.header);
		return answer;
	}

	/** Attempts a call until it is done or refused, or the time is over. */
	async #repeat<T>(call: Call<T>, signal?: AbortSignal): Promise<T> {
		const shareMs = Math.round(this.#requestTimeoutMs / this.#endpoints.length);
		const attemptMs = Math.max(leastAttemptMs, shareMs);
		return this.#attempts(call, attemptMs, (outcome) => outcome !== "refused", signal);
	}

	/** Attempts a call until it may have been done. */
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
		for (;;) {
			try {
				return await this.#attempt(call, attemptMs, total.signal);
			} catch (error) {
				signal?.throwIfAborted();
				const canRetry = error instanceof EtcdError && again(error.outcome);
				if (!canRetry || total.signal.aborted || this.#closed.signal.aborted) {
					throw error;
				}
				await this.#pause(total.signal).catch(() => {
					signal?.throwIfAborted();
					throw error;
				});
			}
		}
	}

	/** Waits before another attempt. Timers of a clock do not keep the process alive; a call should. */
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
			const answer = await call(endpoint, { signal: stop, headers });
			this.#answered(endpoint);
			return answer;
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
	 * Sees to a connection, and returns what goes with every call on it.
	 *
	 * @throws EtcdError, whose outcome is never `unknown`: the call was not sent.
	 */
	async #connect(endpoint: Endpoint, signal: AbortSignal): Promise<Record<string, string>> {
		await endpoint.connect(signal);
		try {
			const token = await unlessAborted(this.#token.get(endpoint), signal);
			// A member that has lost the others says so at once, instead of waiting for them.
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

	/** Turns to the next member, unless another call has done so. */
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
			this.#log.warn({ endpoint: endpoint.url, why }, "etcd does not answer");
		}
	}

	#answered(endpoint: Endpoint): void {
		if (this.#failing.delete(endpoint)) {
			this.#log.info({ endpoint: endpoint.url }, "etcd answers again");
		}
	}
}

type Call<T> = (endpoint: Endpoint, options: CallOptions) => Promise<T>;

async function* iterate<T>(items: Iterable<T>): AsyncGenerator<T, void, undefined> {
	yield* items;
}

/** Whether etcd ended a watch because of the token: it says so in words only. */
function isAboutToken({ code, message }: EtcdError): boolean {
	return (
		code === Code.Unauthenticated ||
		/invalid auth token|revision of auth store is old|permission denied/.test(message)
	);
}
