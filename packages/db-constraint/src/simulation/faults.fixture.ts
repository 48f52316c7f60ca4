import type { Random } from "@plinth/runtime";
import type { Workload } from "./workload.fixture.ts";

/** How often each fault occurs, as probabilities from 0 to 1 per occasion. */
export interface Faults {
	/** That a storage step or a message waits for another turn of the scheduler. */
	readonly turn: number;
	/** That a storage step or a message takes seconds or minutes. */
	readonly slow: number;
	/** That a message is lost: a request before it takes effect, or a response afterwards. */
	readonly lost: number;
	/** That a request is delivered a second time, later. */
	readonly repeated: number;
	/** That a commit of the last deployment takes seconds to apply. */
	readonly held: number;
	/** That a commit fails with StorageUnavailable: it was applied, is applied later, or never is. */
	readonly unknown: number;
	/** That a watch breaks, at each of its events. */
	readonly broken: number;
	/** That a watch of deletions begins up to a minute late. */
	readonly late: number;
	/** The mean time between two crashes, in milliseconds; `Infinity` for no crashes. */
	readonly crashEveryMs: number;
	/** The mean time between two splits from the meta deployment, in milliseconds; `Infinity` for none. */
	readonly splitEveryMs: number;
	/** That a deployment is missing from the registry view with which a server starts. */
	readonly missing: number;
}

/** No faults. Steps still wait for turns of the scheduler. */
export const noFaults: Faults = {
	turn: 0.1,
	slow: 0,
	held: 0,
	lost: 0,
	repeated: 0,
	unknown: 0,
	broken: 0,
	late: 0,
	crashEveryMs: Number.POSITIVE_INFINITY,
	splitEveryMs: Number.POSITIVE_INFINITY,
	missing: 0,
};

/**
 * Draws for each fault whether it is absent, rare or frequent: some bugs only appear when other faults
 * are absent.
 *
 * @param workload - supplies the candidates for some faults.
 * @param hasLate - whether watches of deletions begin late.
 */
export function drawFaults(
	random: Random,
	{ slow, held, repeated, unknown }: Workload,
	hasLate: boolean,
): Faults {
	const one = (...levels: readonly number[]) =>
		levels[Math.floor(random.next() * levels.length)] ?? 0;
	return {
		turn: one(0.1, 0.3, 0.5, 0.75),
		slow: one(...slow),
		held: one(...held),
		lost: one(0, 0.02, 0.1),
		repeated: one(...repeated),
		unknown: one(...unknown),
		broken: one(0, 0.02, 0.1),
		late: hasLate ? one(0.3, 0.7, 0.95) : 0,
		crashEveryMs: one(Number.POSITIVE_INFINITY, 60_000, 20_000),
		splitEveryMs: one(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 60_000, 20_000),
		missing: one(0, 0.1, 0.3),
	};
}
