import type { Clock } from "@plinth/runtime";
import type { TypeCache } from "./type-cache.ts";

/** The versions that caches must have reached. */
export type CachePositions<Cache = TypeCache> = ReadonlyMap<Cache, number>;

/** Options of `whenReached`. */
export interface WhenReachedOptions {
	readonly clock: Clock;
	/** A version that the storage has reached. */
	readonly newest: number;
	readonly limitMs: number;
}

/** Waits until all caches are primed. Returns false as soon as one can't be primed, or was not in time. */
export function whenPrimed(
	caches: readonly Pick<TypeCache, "whenPrimed">[],
	limitMs: number,
): Promise<boolean> {
	return allTrue(caches.map((cache) => cache.whenPrimed(limitMs)));
}

/**
 * Waits until all caches have reached their versions. Returns false as soon as one has not in time.
 *
 * A client may name any version. If the storage may not have reached the highest one, a single cache calls the servers
 * about it, and the others begin when that cache has reached it:
 *
 * ```
 *   the highest version ──▶ one cache: DescribeType ──▶ reached ──────▶ the others: checks that calls share
 *                                             └───────▶ not reached ──▶ forwarded, and refused by a server
 * ```
 *
 * So a version that the storage has not reached costs the servers one call, however many caches there are.
 */
export async function whenReached(
	positions: CachePositions<Pick<TypeCache, "version" | "reach">>,
	{ clock, newest, limitMs }: WhenReachedOptions,
): Promise<boolean> {
	const untilMs = clock.monotonic() + limitMs;
	let known = Math.max(newest, ...[...positions.keys()].map(({ version }) => version));
	const [highest] = [...positions].toSorted(([, a], [, b]) => b - a);
	if (highest !== undefined && highest[1] > known) {
		const [cache, version] = highest;
		if (!(await cache.reach(version, limitMs, known))) {
			return false;
		}
		known = version;
	}
	const leftMs = untilMs - clock.monotonic();
	return allTrue([...positions].map(([cache, version]) => cache.reach(version, leftMs, known)));
}

/** Whether all are true. Once one is false, it does not wait for the others. */
function allTrue(outcomes: readonly Promise<boolean>[]): Promise<boolean> {
	return new Promise((resolve, reject) => {
		for (const outcome of outcomes) {
			outcome.then((isTrue) => isTrue || resolve(false), reject);
		}
		Promise.all(outcomes).then(() => resolve(true), reject);
	});
}
