import type { Random } from "../random.ts";

/**
 * Random numbers determined by a seed. The generator is Marsaglia's 32-bit xorshift; the seed is
 * scrambled so that neighboring seeds give unrelated sequences.
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
