import type { Point } from "./layout.ts";

/** How round a corner is at most, in pixels. */
const cornerPx = 8;

/** The `d` of a path along points, with rounded corners. */
export function roundedPath(points: readonly Point[]): string {
	return points
		.map((point, at) => {
			const [before, after] = [points[at - 1], points[at + 1]];
			if (before === undefined) {
				return `M${text(point)}`;
			}
			return after === undefined
				? `L${text(point)}`
				: `L${text(towards(point, before))}Q${text(point)} ${text(towards(point, after))}`;
		})
		.join("");
}

/** The point in the middle of the way along points, as `[x, y]`. */
export function middleOf(points: readonly Point[]): readonly [x: number, y: number] {
	const lengths = points.slice(1).map((point, at) => distance(points[at] ?? point, point));
	let left = lengths.reduce((sum, each) => sum + each, 0) / 2;
	for (const [at, length] of lengths.entries()) {
		const [from, to] = [points[at], points[at + 1]];
		if (from !== undefined && to !== undefined && length > 0 && left <= length) {
			const { x, y } = between(from, to, left / length);
			return [x, y];
		}
		left -= length;
	}
	const { x, y } = points[0] ?? { x: 0, y: 0 };
	return [x, y];
}

/** Where the corner at a point begins on the way to another: at most in the middle. */
function towards(point: Point, other: Point): Point {
	const length = distance(point, other);
	return length === 0 ? point : between(point, other, Math.min(cornerPx / length, 0.5));
}

function between(from: Point, to: Point, part: number): Point {
	return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

function distance(a: Point, b: Point): number {
	return Math.hypot(a.x - b.x, a.y - b.y);
}

function text({ x, y }: Point): string {
	return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
