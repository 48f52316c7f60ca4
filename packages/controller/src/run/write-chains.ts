import type { Clock } from "@plinth/runtime";

/** A chain of reconciles, each requested by what the one before has written, that is too long to end by itself. */
export interface EndlessChain {
	/** The key of the last one. */
	readonly key: string;
	/** How many there are. */
	readonly length: number;
	/** When that was noticed, in milliseconds since the epoch. */
	readonly atMs: number;
}

/** How long a chain may be. */
const maxLength = 200;

/** Of how many writes the lengths of their chains are kept. */
const maxWrites = 10_000;

/** How many writes may request a key before their responses come. */
const maxUnknown = 8;

/** How many keys are remembered that were reported. */
const maxReported = 1_000;

/** After which time a key is reported again, in milliseconds. */
const reportAgainMs = 3_600_000;

/**
 * Follows which writes of reconciles request further reconciles, over all controllers of a manager:
 *
 *     a user writes ─▶ reconcile, writes (1) ─▶ reconcile, writes (2) ─▶ … ─▶ reconcile that writes nothing
 *
 * Controllers that reach what they want end each chain soon. A chain of `maxLength` writes proves that they trigger each
 * other, or themselves: nobody else has changed anything meanwhile. A reconcile that is requested by several changes
 * continues the shortest of their chains, and begins a new one if anything else has requested it: a user, priming, a resync,
 * its own wish to be repeated, a failure.
 *
 * What is not known counts as the begin of a chain, such as writes of other servers, and deletions. So a cycle may stay
 * unnoticed, and nothing else is taken for one.
 */
export class WriteChains {
	readonly #clock: Clock;
	/** The lengths of the chains that end with recent writes, in the order of these. */
	readonly #lengths = new Map<string, number>();
	/** When keys were reported last, on the monotonic clock. */
	readonly #reportedMs = new Map<string, number>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** The length of the chain that ends with a write; `undefined` if the write is not known. */
	lengthOf(write: string): number | undefined {
		return this.#lengths.get(write);
	}

	/**
	 * A reconcile has written.
	 *
	 * @param key - that of the reconcile.
	 * @param length - of the chain that has requested it.
	 * @returns the chain, if it is too long and was not reported within the last hour.
	 */
	wrote(key: string, write: string, length: number): EndlessChain | undefined {
		this.#lengths.set(write, length + 1);
		forgetOldest(this.#lengths, maxWrites);
		return length + 1 >= maxLength ? this.#report(key, length + 1) : undefined;
	}

	#report(key: string, length: number): EndlessChain | undefined {
		const nowMs = this.#clock.monotonic();
		const beforeMs = this.#reportedMs.get(key) ?? Number.NEGATIVE_INFINITY;
		if (nowMs - beforeMs < reportAgainMs) {
			return undefined;
		}
		this.#reportedMs.delete(key);
		this.#reportedMs.set(key, nowMs);
		forgetOldest(this.#reportedMs, maxReported);
		return { key, length, atMs: this.#clock.now() };
	}
}

/** Identifies a write among all that concern one storage. */
export function writeOf(family: string, version: string): string {
	return `${family}@${version}`;
}

interface Cause {
	/** The length of the shortest chain that is known of. */
	length: number;
	/** Writes that were not known yet: their events may be faster than their responses. */
	readonly unknown: string[];
}

/** What has requested the queued keys of a run. */
export class RequestCauses {
	readonly #chains: WriteChains;
	readonly #causes = new Map<string, Cause>();

	constructor(chains: WriteChains) {
		this.#chains = chains;
	}

	/** A key is requested. @param write - the change that requests it; `undefined` if it is something else. */
	add(key: string, write: string | undefined): void {
		const length = write === undefined ? 0 : this.#chains.lengthOf(write);
		const cause = this.#causes.get(key);
		if (cause === undefined) {
			this.#causes.set(key, {
				length: length ?? Number.POSITIVE_INFINITY,
				unknown: length === undefined && write !== undefined ? [write] : [],
			});
		} else if (length !== undefined) {
			cause.length = Math.min(cause.length, length);
		} else if (cause.unknown.length >= maxUnknown) {
			cause.length = 0;
		} else if (write !== undefined) {
			cause.unknown.push(write);
		}
	}

	/**
	 * A key is reconciled now. Returns the length of the chain that has requested it, once that is needed: by then, responses
	 * that were slower than their events have come.
	 */
	take(key: string): () => number {
		const cause = this.#causes.get(key);
		if (cause === undefined) {
			return () => 0;
		}
		this.#causes.delete(key);
		const { length, unknown } = cause;
		return () => Math.min(length, ...unknown.map((write) => this.#chains.lengthOf(write) ?? 0));
	}

	/** Forgets the keys that match: they are not queued any more. */
	drop(matches: (key: string) => boolean): void {
		for (const key of this.#causes.keys()) {
			if (matches(key)) {
				this.#causes.delete(key);
			}
		}
	}
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
	if (map.size > max) {
		const [oldest] = map.keys();
		map.delete(oldest ?? "");
	}
}
