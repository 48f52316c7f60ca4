import type { Fence } from "./lease.ts";

/**
 * Grants leases to holders in other processes. Nobody can tell whether such a process still runs, so a lease ends unless its
 * holder renews it. A holder is identified by an id that it chooses for one attempt to hold a lease.
 *
 * The contract of an implementation: a lease that was granted or renewed by a request has no other holder until `ttlMs`
 * after that request was made. A holder that counts from then is never live beside another one, however late the response
 * is; see `RenewedHold`.
 */
export interface TimedLeases {
	/** How long a lease lasts after it was granted or renewed, in milliseconds. */
	readonly ttlMs: number;
	/**
	 * Waits until the lease is free, and grants it; or renews it, if the holder has it already, as when a request is
	 * repeated. It tries at least once, and returns `undefined` if the lease is not free when `patience` has aborted.
	 *
	 * @throws TooManyLeases
	 */
	grant(name: string, holder: string, patience: AbortSignal): Promise<Fence | undefined>;
	/**
	 * If the holder has the lease, it lasts for its whole time again, and the fence is returned. It is another one if the lease
	 * has expired, and was granted again to a request that came late.
	 */
	renew(name: string, holder: string): Promise<Fence | undefined>;
	/** Ends the lease if the holder has it. */
	release(name: string, holder: string): Promise<void>;
	/** Like `held` of `LeaseManager`. */
	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>>;
}

/** As many leases are held as the engine allows. */
export class TooManyLeases extends Error {
	override readonly name = "TooManyLeases";

	constructor(limit: number) {
		super(`${limit} leases are held, which is the limit: release some, or wait until they expire`);
	}
}
