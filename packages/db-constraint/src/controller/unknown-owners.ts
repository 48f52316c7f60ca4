import { Backoff, type Clock } from "@plinth/runtime";
import type { ConstraintLimits } from "../node/limits.ts";

/** An owner of which is not known whether it is valid. */
interface Unknown {
	readonly backoff: Backoff;
	/** On the monotonic clock, like `nextMs`. */
	readonly sinceMs: number;
	readonly nextMs: number;
	/** What is in the way, for people. It names no passing details, so that it changes only if the cause does. */
	readonly problem: string;
}

/**
 * The owners of which is not known whether they are valid, because their deployment is not known, does not respond or
 * does not know their type. They are asked about after pauses that grow to `maxRequeryMs`, and reported once they have
 * been unknown for `ownerGraceMs`.
 */
export class UnknownOwners {
	readonly #clock: Clock;
	readonly #limits: ConstraintLimits;
	/** By shadow, then by owner. */
	readonly #unknown = new Map<string, Map<string, Unknown>>();
	/** The shadows with a check that has begun, and that nothing has made outdated since. */
	readonly #current = new Set<string>();

	constructor(clock: Clock, limits: ConstraintLimits) {
		this.#clock = clock;
		this.#limits = limits;
	}

	/** The time until the owner may be asked about, in milliseconds; 0 or less if now. */
	waitMs(shadow: string, item: string): number {
		const unknown = this.#unknown.get(shadow)?.get(item);
		return unknown === undefined ? 0 : unknown.nextMs - this.#clock.monotonic();
	}

	/** A check of the owners of a shadow begins. It ends with `retain`. */
	begin(shadow: string): void {
		this.#current.add(shadow);
	}

	/**
	 * It could not be found out whether the owner is valid. Returns the pause before the next attempt: none if something
	 * about the owners has changed since the check has begun, which may have read what was before.
	 */
	failed(shadow: string, item: string, problem: string): number {
		const { requeryMs: baseMs, maxRequeryMs: maxMs } = this.#limits;
		const unknown = this.#unknown.get(shadow) ?? new Map<string, Unknown>();
		this.#unknown.set(shadow, unknown);
		const before = unknown.get(item);
		const backoff = before?.backoff ?? new Backoff({ clock: this.#clock, baseMs, maxMs });
		const now = this.#clock.monotonic();
		const pauseMs = this.#current.has(shadow) ? backoff.nextDelayMs() : 0;
		const sinceMs = before?.sinceMs ?? now;
		unknown.set(item, { backoff, sinceMs, nextMs: now + pauseMs, problem });
		return pauseMs;
	}

	/** Something about the owners of the shadow has changed: they are asked about at once. */
	hasten(shadow: string): void {
		this.#current.delete(shadow);
		for (const [item, unknown] of this.#unknown.get(shadow) ?? []) {
			unknown.backoff.reset();
			this.#unknown.get(shadow)?.set(item, { ...unknown, nextMs: 0 });
		}
	}

	/** Removes the owners that the shadow no longer has, or of which is known now whether they are valid. */
	retain(shadow: string, items: ReadonlySet<string>): void {
		this.#current.delete(shadow);
		const unknown = this.#unknown.get(shadow);
		for (const item of unknown?.keys() ?? []) {
			if (!items.has(item)) {
				unknown?.delete(item);
			}
		}
		if (unknown?.size === 0) {
			this.#unknown.delete(shadow);
		}
	}

	/** The problems that last. */
	problems(shadow: string): readonly string[] {
		const now = this.#clock.monotonic();
		const lasting = [...(this.#unknown.get(shadow)?.values() ?? [])].filter(
			({ sinceMs }) => now - sinceMs >= this.#limits.ownerGraceMs,
		);
		return [...new Set(lasting.map(({ problem }) => problem))].sort();
	}

	/** Whether some owner of the shadow is unknown. */
	has(shadow: string): boolean {
		return this.#unknown.has(shadow);
	}
}
