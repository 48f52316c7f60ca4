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
 * continues the shortest of their chains, and begins a new one if anything else has requested it: a user, an event of a
 * custom watch, its own wish to be repeated, a failure. Priming and resyncs, which are rare, do not count as requests.
 *
 * What is not known counts as the begin of a chain, such as writes of other servers, and deletions. So a cycle may stay
 * unnoticed, and nothing else is taken for one.
 */
export class WriteChains {
	readonly #clock: Clock;
	/** The lengths of the chains that end with recent writes, by their versions, in the order of the writes. */
	readonly #lengths = new Map<string, number>();
	/** When keys were reported last, on the monotonic clock. */
	readonly #reportedMs = new Map<string, number>();

	constructor(clock: Clock) {
		this.#clock = clock;
	}

	/** Whether no reconcile has written anything yet. */
	get isEmpty(): boolean {
		return this.#lengths.size === 0;
	}

	/** The length of the chain that ends with the write of this version; `undefined` if the write is not known. */
	lengthOf(version: string): number | undefined {
		return this.#lengths.get(version);
	}

	/** The length of the chain that has requested a reconcile, once its own write has a response: then others have theirs. */
	lengthBefore(cause: Cause): number {
		switch (typeof cause) {
			case "number":
				return cause;
			case "string":
				return this.lengthOf(cause) ?? 0;
			case "object": {
				const { length, unknown } = cause;
				return Math.min(length, ...unknown.map((version) => this.lengthOf(version) ?? 0));
			}
		}
	}

	/**
	 * A reconcile has written.
	 *
	 * @param key - that of the reconcile.
	 * @param version - of the write.
	 * @param cause - what has requested the reconcile.
	 * @returns the chain, if it is too long and was not reported within the last hour.
	 */
	wrote(key: string, version: string, cause: Cause): EndlessChain | undefined {
		const length = this.lengthBefore(cause) + 1;
		this.#lengths.set(version, length);
		forgetOldest(this.#lengths, maxWrites);
		return length >= maxLength ? this.#report(key, length) : undefined;
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

/**
 * What has requested a key: the length of the shortest chain; or the version of a write that is not known yet, since the
 * event of a write may be faster than its response; or several. There is one for each event, so most are no objects.
 */
export type Cause = number | string | SeveralCauses;

interface SeveralCauses {
	/** The length of the shortest chain that is known of. */
	length: number;
	/** The versions of writes that were not known yet. */
	readonly unknown: string[];
}

/** What has requested the queued keys of a run. A key that is not in here begins a chain. */
export class RequestCauses {
	readonly #chains: WriteChains;
	readonly #causes = new Map<string, Cause>();

	constructor(chains: WriteChains) {
		this.#chains = chains;
	}

	/** A key is requested. @param write - the version of the write that requests it; `undefined` if it is something else. */
	add(key: string, write: string | undefined): void {
		const known = this.#causes.get(key);
		if (known === 0 || (known === undefined && this.#chains.isEmpty)) {
			return;
		}
		const cause = write === undefined ? 0 : (this.#chains.lengthOf(write) ?? write);
		this.#causes.set(key, known === undefined || cause === 0 ? cause : both(known, cause));
	}

	/** A key is reconciled now: what has requested it. */
	take(key: string): Cause {
		const cause = this.#causes.get(key);
		if (cause === undefined) {
			return 0;
		}
		this.#causes.delete(key);
		return cause;
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

function both(known: Cause, cause: number | string): Cause {
	if (typeof known === "number" && typeof cause === "number") {
		return Math.min(known, cause);
	}
	const several =
		typeof known === "object"
			? known
			: {
					length: typeof known === "number" ? known : Number.POSITIVE_INFINITY,
					unknown: typeof known === "string" ? [known] : [],
				};
	if (typeof cause === "number") {
		several.length = Math.min(several.length, cause);
	} else if (several.unknown.length < maxUnknown) {
		several.unknown.push(cause);
	} else {
		return 0;
	}
	return several;
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
	if (map.size > max) {
		const [oldest] = map.keys();
		map.delete(oldest ?? "");
	}
}
