import { expect, it } from "vitest";
import { bufProblems, tscProblems } from "./tool-problems.ts";

it("reads what buf prints", () => {
	expect(
		bufProblems(
			'proto/zoo/v1/animal.proto:12:17:syntax error: unexpected ";"\nFailure: no module\n',
		),
	).toEqual({
		problems: [
			{
				file: "proto/zoo/v1/animal.proto",
				line: 12,
				column: 17,
				message: 'syntax error: unexpected ";"',
			},
		],
		others: ["Failure: no module"],
	});
});

it("reads what tsc prints, with the lines that continue a message", () => {
	expect(
		tscProblems(
			"src/a.ts(3,7): error TS2322: Type 'A' is not assignable to type 'B'.\n  Property 'c' is missing.\nsrc/b (1).ts(1,1): error TS1005: ';' expected.\nerror TS5058: no such file\n",
		),
	).toEqual({
		problems: [
			{
				file: "src/a.ts",
				line: 3,
				column: 7,
				message: "TS2322: Type 'A' is not assignable to type 'B'.\n  Property 'c' is missing.",
			},
			{ file: "src/b (1).ts", line: 1, column: 1, message: "TS1005: ';' expected." },
		],
		others: ["error TS5058: no such file"],
	});
});
