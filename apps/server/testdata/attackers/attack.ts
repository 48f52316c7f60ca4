import { setTimeout as delay } from "node:timers/promises";

/** The target of the attackers. */
export interface Target {
	/** Such as `http://127.0.0.1:7575`. */
	readonly address: string;
	/** The token of a subject that has all rights in one namespace, and none elsewhere. */
	readonly token: string;
	/** That namespace. */
	readonly namespace: string;
	/** The token of a subject without any rights. */
	readonly powerless: string;
	/** Aborts when the attack is over. */
	readonly end: AbortSignal;
}

/** The result of an attack: the number of occurrences per event. */
export type Tally = Map<string, number>;

/** One kind of attack. It continues until the target's signal aborts, and must not throw. */
export type Attack = (target: Target, tally: Tally) => Promise<void>;

/** Counts one occurrence. */
export function count(tally: Tally, what: string): void {
	tally.set(what, (tally.get(what) ?? 0) + 1);
}

/** Waits, but not beyond the end of the attack. */
export async function pause(ms: number, end: AbortSignal): Promise<void> {
	await delay(ms, undefined, { signal: end }).catch(() => {});
}

/** Runs `once` again and again, in so many loops, with a pause after each turn. */
export async function repeat(
	loops: number,
	pauseMs: number,
	end: AbortSignal,
	once: (loop: number) => Promise<void>,
): Promise<void> {
	await Promise.all(
		Array.from({ length: loops }, async (_, loop) => {
			while (!end.aborted) {
				await once(loop).catch(() => {});
				await pause(pauseMs, end);
			}
		}),
	);
}
