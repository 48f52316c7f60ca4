import process from "node:process";
import { afterEach, expect, it } from "vitest";
import { processIo } from "./process-io.ts";

const { isTTY, columns } = process.stdout;
afterEach(() => {
	Object.assign(process.stdout, { isTTY, columns });
});

it.each([
	[{ isTTY: true, columns: 80 }, 80],
	// A terminal that does not know its size, such as a serial one.
	[{ isTTY: true, columns: 0 }, undefined],
	[{ isTTY: false, columns: 80 }, undefined],
])("has the width of a terminal, if there is one that knows it: %j", (stdout, width) => {
	Object.assign(process.stdout, stdout);
	expect(processIo().width).toBe(width);
});
