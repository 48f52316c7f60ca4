/**
 * Grants exclusive rights by name, each to one holder at a time.
 *
 * The contract of an implementation: whenever a `LeaseHold` is live (its `signal` has not aborted),
 * no other hold of that name is live anywhere. An engine that grants leases for a time aborts the
 * signal of a hold that it could not renew before another holder can be granted it.
 */
export interface LeaseManager {
	/**
	 * Waits until the lease of that name is free, and acquires it. If `signal` aborts first, it
	 * rejects with the signal's reason and acquires nothing.
	 */
	acquire(name: string, signal: AbortSignal): Promise<LeaseHold>;
	/**
	 * The names of the held leases that begin with `prefix`: now, and after each change, of which several may come as
	 * one. Only acquiring a lease says for sure who holds it; this may be late, and is silent while the engine is
	 * unreachable. It ends by throwing the reason of `signal`.
	 */
	held(prefix: string, signal: AbortSignal): AsyncIterable<ReadonlySet<string>>;
}

/** A lease that is, or was, held. */
export interface LeaseHold {
	/** Sent with writes, so that they are refused once someone else holds the lease. */
	readonly fence: Fence;
	/** Aborts when the hold has ended: lost, or released. */
	readonly signal: AbortSignal;
	/** Ends the hold, so that the lease can be granted again. Releasing twice does nothing. */
	release(): Promise<void>;
}

/** The token of one hold of a lease. A storage refuses a commit whose fence is no longer current. */
export interface Fence {
	/** The name of the lease. */
	readonly lease: string;
	/** Distinguishes this hold from all earlier and later holds of the lease. */
	readonly token: string;
}

/** The fence as the value of the header `x-plinth-fence`. */
export function encodeFence(fence: Fence): string {
	return `${encodeURIComponent(fence.lease)}/${encodeURIComponent(fence.token)}`;
}

/** The fence of a header value, or `undefined` if it is malformed. */
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
