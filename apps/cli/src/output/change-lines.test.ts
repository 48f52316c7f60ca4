import { describe, expect, it } from "vitest";
import { changeLines } from "./change-lines.ts";

const layout = { width: 80, color: false, isWide: false };

describe("changeLines", () => {
	it("measures no more of large values than it shows", () => {
		const start = process.cpuUsage();
		for (const letter of ["é", "a\u0301", "👨‍👩‍👧"]) {
			const text = letter.repeat(1_000_000 / letter.length);
			const [line] = changeLines(
				[{ path: ["data", "title"], before: `${text}1`, after: `${text}2` }],
				layout,
			);
			expect(line).toMatch(/^ {2}~ data\.title: ….*1 → ….*2\n$/u);
		}
		const many = Array.from({ length: 200_000 }, (_, at) => ({ path: [`é${at}`], after: "é" }));
		expect(changeLines(many, layout).at(-1)).toBe(
			"  … and 199980 more changes: -o wide shows them\n",
		);
		// Of processor time, so that a busy machine makes no difference. It took 14 seconds.
		expect(process.cpuUsage(start).user).toBeLessThan(5_000_000);
	});
});
