import { expect, it } from "vitest";
import { middleOf, roundedPath } from "./route.ts";

const straight = [
	{ x: 0, y: 0 },
	{ x: 0, y: 40 },
];

const corner = [...straight, { x: 10, y: 40 }];

it("draws a line along its points, with corners that are at most as round as there is space", () => {
	expect(roundedPath([])).toBe("");
	expect(roundedPath(straight)).toBe("M0,0L0,40");
	expect(roundedPath(corner)).toBe("M0,0L0,32Q0,40 5,40L10,40");
});

it("finds the middle of the way", () => {
	expect(middleOf([])).toEqual([0, 0]);
	expect(middleOf(straight)).toEqual([0, 20]);
	expect(middleOf(corner)).toEqual([0, 25]);
	expect(middleOf([{ x: 3, y: 4 }])).toEqual([3, 4]);
});
