import type { Random } from "../random.ts";

/**
 * Randomness that a seed replays. The generator is Marsaglia's xorshift on 32 bits, its seed
 * scrambled so that neighbouring seeds have nothing in common.
 */
export function seededRandom(seed: number): Random {
	let state = scramble(seed | 0) || 1;
	return {
		next() {
			state ^= state << 13;
			state ^= state >>> 17;
			state ^= state << 5;
			return (state >>> 0) / 2 ** 32;
		},
	};
}

function scramble(seed: number): number {
	let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
	mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
	return mixed ^ (mixed >>> 16);
}
