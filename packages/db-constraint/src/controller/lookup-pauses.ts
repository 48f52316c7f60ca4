import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Backoff, type Clock } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { keyString } from "../shadow/resource-key.ts";

/** The missing targets of one shadow. */
interface Missing {
	/** Which they are. */
	readonly targets: string;
	readonly backoff: Backoff;
	/** When they are looked up again, on the monotonic clock. */
	readonly dueMs: number;
}

/**
 * When the missing targets of each shadow are looked up again: after pauses that grow from `resolveRetryMs` to
 * `maxResolveRetryMs`, as long as the same are missing and the registry does not change where they are. A restore that has
 * lost thousands of targets would otherwise cost as many lookups in each interval, for as long as operators let them be.
 */
export class LookupPauses {
	readonly #clock: Clock;
	readonly #limits: ConstraintLimits;
	readonly #missing = new Map<string, Missing>();
	/** The shadows with a lookup that has begun, and that no reset has made outdated since. */
	readonly #current = new Set<string>();

	constructor(clock: Clock, limits: ConstraintLimits) {
		this.#clock = clock;
		this.#limits = limits;
	}

	/** The time until the targets are to be looked up, in milliseconds; 0 or less if now. */
	waitMs(name: string, shadow: Shadow): number {
		const missing = this.#missing.get(name);
		return missing?.targets === targetsOf(shadow) ? missing.dueMs - this.#clock.monotonic() : 0;
	}

	/** A lookup begins. There is one at a time for each shadow. */
	begin(name: string): void {
		this.#current.add(name);
	}

	/**
	 * They are still missing. Returns the pause before the next lookup: none if the registry has changed since this one has
	 * begun, which may have read what the registry was before.
	 */
	failed(name: string, shadow: Shadow): number {
		const isCurrent = this.#current.delete(name);
		if (!isCurrent && !isPlanted("forget a change of the registry during a lookup")) {
			return 0;
		}
		const targets = targetsOf(shadow);
		const { resolveRetryMs: baseMs, maxResolveRetryMs: maxMs } = this.#limits;
		const before = this.#missing.get(name);
		const backoff =
			before?.targets === targets
				? before.backoff
				: new Backoff({ clock: this.#clock, baseMs, maxMs });
		const pauseMs = backoff.nextDelayMs();
		this.#missing.set(name, { targets, backoff, dueMs: this.#clock.monotonic() + pauseMs });
		return pauseMs;
	}

	/** They are looked up at once: the registry has changed, or nothing is missing any longer. */
	reset(name: string): void {
		this.#current.delete(name);
		this.#missing.delete(name);
	}
}

function targetsOf({ uid, outgoing }: Shadow): string {
	const missing = outgoing.filter(({ targetUid }) => targetUid === "");
	const texts = missing.map(({ target, missing: lost }) => {
		// Operators who decide about it have just looked: what they expect may come soon.
		const kept = lost?.isKept ? " kept" : "";
		return `${target ? keyString(target) : ""}${kept}`;
	});
	return [uid, ...texts].join("\n");
}
