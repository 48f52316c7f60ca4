/**
 * The right to do something alone, held by one holder at a time.
 *
 * The contract of an implementation: whenever a `LeaseHold` is live (its `signal` has not aborted),
 * no other hold of that name is live anywhere. An engine that grants leases for a time aborts the
 * signal of a hold that it could not renew before another holder can be granted it.
 */
export interface LeaseManager {
	/**
	 * Waits until the lease of that name is free, and holds it. Rejects with the signal's reason
	 * where `signal` aborts first; then nothing is held.
	 */
	acquire(name: string, signal: AbortSignal): Promise<LeaseHold>;
}

/** A lease that is, or was, held. */
export interface LeaseHold {
	/** What a write carries to be refused once someone else holds the lease. */
	readonly fence: Fence;
	/** Aborts when the hold has ended: lost, or released. */
	readonly signal: AbortSignal;
	/** Ends the hold, so that another can be granted it. Releasing twice does nothing. */
	release(): Promise<void>;
}

/** The token of one hold of a lease. A storage refuses a commit whose fence is no longer current. */
export interface Fence {
	/** The name of the lease. */
	readonly lease: string;
	/** Tells this hold from all others of that lease, before and after it. */
	readonly token: string;
}

/** The fence as the value of the header `x-plinth-fence`. */
export function encodeFence(fence: Fence): string {
	return `${encodeURIComponent(fence.lease)}/${encodeURIComponent(fence.token)}`;
}

/** The fence of a header value, or `undefined` where it is malformed. */
export function decodeFence(value: string): Fence | undefined {
	const separator = value.indexOf("/");
	if (separator <= 0 || separator === value.length - 1) {
		return undefined;
	}
	try {
		return {
			lease: decodeURIComponent(value.slice(0, separator)),
			token: decodeURIComponent(value.slice(separator + 1)),
		};
	} catch {
		return undefined;
	}
}
