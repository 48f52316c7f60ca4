import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { LeaseService } from "@plinth/proto";
import { newUlid } from "@plinth/resource";
import {
	Backoff,
	decodeFence,
	type Fence,
	type LeaseHold,
	type LeaseManager,
	type Logger,
	RenewedHold,
	type Runtime,
} from "@plinth/runtime";

/** Options of `RemoteLeases`. */
export interface RemoteLeasesOptions {
	readonly client: Client<typeof LeaseService>;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	readonly logger: Logger;
	/** The options of each call, such as headers with a token. */
	readonly callOptions?: () => CallOptions;
}

/** How long one request waits for a lease, in milliseconds, and how much longer its response may take. */
const waitMs = 20_000;
const slackMs = 5_000;

/** The backoff after failures. */
const backoffPolicy = { baseMs: 200, maxMs: 5_000 } as const;

/** What is refused again, however often it is requested. */
const permanent: ReadonlySet<Code> = new Set([
	Code.InvalidArgument,
	Code.PermissionDenied,
	Code.Unauthenticated,
	Code.FailedPrecondition,
	Code.Unimplemented,
]);

/**
 * Leases that servers grant over the API, for controllers in other processes. Each hold is renewed until it is released. It
 * ends in time if no server can be reached; see `RenewedHold`.
 */
export class RemoteLeases implements LeaseManager {
	readonly #options: RemoteLeasesOptions;

	constructor(options: RemoteLeasesOptions) {
		this.#options = options;
	}

	/**
	 * Waits without a limit, also while no server can be reached.
	 *
	 * @throws ConnectError if the request is refused: PermissionDenied, Unauthenticated, InvalidArgument.
	 */
	async acquire(name: string, signal: AbortSignal): Promise<LeaseHold> {
		// New for each hold: what is left of an earlier one in the network can neither renew nor release this one.
		const holder = newUlid(this.#options.runtime);
		const backoff = this.#backoff();
		const { clock } = this.#options.runtime;
		try {
			for (;;) {
				signal.throwIfAborted();
				const beganMs = clock.monotonic();
				try {
					const hold = await this.#attempt(name, holder, signal);
					if (hold !== undefined) {
						return hold;
					}
					if (clock.monotonic() - beganMs > waitMs / 2) {
						backoff.reset();
					} else {
						// The server stops, and has not waited.
						await backoff.wait(signal);
					}
				} catch (failure) {
					this.#throwIfPermanent(failure, signal);
					this.#options.logger.warn({ lease: name, err: failure }, "could not request a lease");
					await backoff.wait(signal);
				}
			}
		} catch (failure) {
			// It may have been granted.
			void this.#release(name, holder).catch(() => {});
			throw failure;
		}
	}

	async *held(prefix: string, signal: AbortSignal): AsyncGenerator<ReadonlySet<string>, never> {
		const backoff = this.#backoff();
		for (;;) {
			signal.throwIfAborted();
			try {
				const responses = this.#options.client.watchHeld({ prefix }, this.#callOptions({ signal }));
				for await (const { names } of responses) {
					backoff.reset();
					yield new Set(names);
				}
			} catch (failure) {
				this.#throwIfPermanent(failure, signal);
				this.#options.logger.debug({ prefix, err: failure }, "lost the watch on leases");
			}
			await backoff.wait(signal);
		}
	}

	/** Waits for the lease for a while. Returns `undefined` if it was not free. */
	async #attempt(
		name: string,
		holder: string,
		signal: AbortSignal,
	): Promise<LeaseHold | undefined> {
		const { client, runtime, logger } = this.#options;
		const response = await client.acquire(
			{ name, holder, wait: durationFromMs(waitMs) },
			this.#callOptions({ signal, timeoutMs: waitMs + slackMs }),
		);
		const { clock } = runtime;
		if (response.fence === "" || response.ttl === undefined) {
			return undefined;
		}
		const ttlMs = durationMs(response.ttl);
		// When it was granted is not known, as the request may have waited: the hold begins with this renewal.
		const grantedMs = clock.monotonic();
		const fence = await this.#renew(name, holder, ttlMs, signal);
		if (fence === undefined) {
			return undefined;
		}
		return new RenewedHold({
			...{ fence, ttlMs, grantedMs, clock, logger },
			renew: async (ends) => {
				const renewed = await this.#renew(name, holder, ttlMs, ends);
				return renewed?.token === fence.token;
			},
			revoke: () => this.#release(name, holder),
			settled: () => {},
		});
	}

	/** Returns the fence, or `undefined` if the lease has ended. */
	async #renew(
		name: string,
		holder: string,
		ttlMs: number,
		signal: AbortSignal,
	): Promise<Fence | undefined> {
		const { client } = this.#options;
		const options = this.#callOptions({ signal, timeoutMs: ttlMs / 4 });
		try {
			return decodeFence((await client.renew({ name, holder }, options)).fence);
		} catch (failure) {
			if (ConnectError.from(failure).code === Code.NotFound) {
				return undefined;
			}
			throw failure;
		}
	}

	async #release(name: string, holder: string): Promise<void> {
		const { client } = this.#options;
		await client.release({ name, holder }, this.#callOptions({ timeoutMs: slackMs }));
	}

	#callOptions(own: CallOptions): CallOptions {
		return { ...this.#options.callOptions?.(), ...own };
	}

	#backoff(): Backoff {
		const { clock, random } = this.#options.runtime;
		return new Backoff({ ...backoffPolicy, clock, random });
	}

	#throwIfPermanent(failure: unknown, signal: AbortSignal): void {
		signal.throwIfAborted();
		if (permanent.has(ConnectError.from(failure).code)) {
			throw failure;
		}
	}
}
