import type { Random } from "@plinth/runtime";
import type { Habits } from "./habits.ts";

/** How much goes wrong, as chances from 0 to 1 of each occasion. */
export interface Weather {
	/** Of each further turn that a step of a storage or a message waits. */
	readonly turn: number;
	/** That a step of a storage or a message takes seconds, or minutes. */
	readonly slow: number;
	/** That a message gets lost: a request before it has an effect, an answer after it. */
	readonly lost: number;
	/** That a request arrives a second time, later. */
	readonly repeated: number;
	/** That a commit of the last deployment is under way for seconds before it lands. */
	readonly held: number;
	/** That a commit is answered Inconsistent: it has landed, lands later, or never does. */
	readonly unknown: number;
	/** That a watch breaks, at each of its events. */
	readonly broken: number;
	/** How many milliseconds pass between two crashes, on average; `Infinity` for none. */
	readonly crashEveryMs: number;
	/** That a deployment is missing in the picture that a server starts with. */
	readonly missing: number;
}

/** Nothing goes wrong, but things still take turns. */
export const calm: Weather = {
	turn: 0.1,
	slow: 0,
	held: 0,
	lost: 0,
	repeated: 0,
	unknown: 0,
	broken: 0,
	crashEveryMs: Number.POSITIVE_INFINITY,
	missing: 0,
};

/**
 * Each fault is absent, rare or frequent, as the draw decides: some bugs hide behind too many faults.
 *
 * @param habits - which faults suit the users of the seed.
 */
export function drawWeather(random: Random, { slow, held, repeated, unknown }: Habits): Weather {
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
		crashEveryMs: one(Number.POSITIVE_INFINITY, 60_000, 20_000),
		missing: one(0, 0.1, 0.3),
	};
}
