import type { Draw } from "./draw.fixture.ts";

/** Changes some of the frames' bytes, and their order. */
export function mutate(draw: Draw, frames: Buffer[]): void {
	for (let count = 1 + draw.below(3); count > 0 && frames.length > 0; count--) {
		const index = draw.below(frames.length);
		const chosen = Buffer.from(frames[index] ?? Buffer.alloc(0));
		switch (draw.below(6)) {
			case 0:
				frames.splice(index, 1);
				break;
			case 1:
				frames.splice(draw.below(frames.length), 0, chosen);
				break;
			case 2:
				frames.splice(draw.below(frames.length), 0, ...frames.splice(index, 1));
				break;
			case 3:
				frames[index] = chosen.subarray(0, draw.below(chosen.length + 1));
				break;
			case 4:
				// In the header: the length, the type, the flags or the stream.
				chosen[draw.below(9)] = draw.below(256);
				frames[index] = chosen;
				break;
			default:
				for (let flips = 1 + draw.below(4); flips > 0 && chosen.length > 0; flips--) {
					const at = draw.below(chosen.length);
					chosen[at] = (chosen[at] ?? 0) ^ (1 << draw.below(8));
				}
				frames[index] = chosen;
		}
	}
}

/** Cuts bytes into pieces anywhere. */
export function cut(draw: Draw, bytes: Buffer): readonly Buffer[] {
	const pieces: Buffer[] = [];
	for (let start = 0; start < bytes.length; ) {
		const end = start + 1 + draw.size(draw.pick([3, 100, 100_000]));
		pieces.push(bytes.subarray(start, end));
		start = end;
	}
	return pieces;
}
