import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Logger, silentLogger } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { followFiles } from "./followed-files.ts";

/** Follows a file whose content is refused if it is `wrong`. */
async function follow() {
	const file = join(await temporaryFolder(), "followed");
	await writeFile(file, "first");
	const applied: string[] = [];
	const logged: string[] = [];
	const problems: string[] = [];
	const log = (_: object, message?: string) => logged.push(message ?? "");
	const logger: Logger = { ...silentLogger, info: log, error: log };
	const files = await followFiles({
		...{ files: { file }, clock: new FakeClock(), logger },
		apply: (contents) => {
			if (contents.file === "wrong") {
				throw new Error("it is wrong");
			}
			applied.push(contents.file);
		},
		onChecked: (problem) => problems.push(problem),
	});
	onTestFinished(() => files.close());
	const check = async (content: string | undefined) => {
		await (content === undefined ? rm(file, { force: true }) : writeFile(file, content));
		await files.check();
		return problems.at(-1);
	};
	return { file, applied, logged, check };
}

const refused = "a changed file was refused: the previous contents stay in effect";

describe("a followed file", () => {
	it("that is gone has a problem until it is back, each time, and is applied again only if it has changed", async () => {
		const { file, applied, logged, check } = await follow();
		const back = "the files are there again, and unchanged";
		for (let time = 0; time < 2; time += 1) {
			expect(await check(undefined)).toBe(`${file}: no such file`);
			expect(await check(undefined)).toBe(`${file}: no such file`);
			expect(await check("first")).toBe("");
		}
		expect(applied).toEqual(["first"]);
		expect(logged).toEqual([refused, back, refused, back]);
		await check(undefined);
		expect(await check("second")).toBe("");
		expect(applied).toEqual(["first", "second"]);
	});

	it("that is refused has a problem while it stays so, also after it was gone", async () => {
		const { file, applied, logged, check } = await follow();
		expect(await check("wrong")).toBe("it is wrong");
		expect(await check("wrong")).toBe("it is wrong");
		expect(logged).toEqual([refused]);
		expect(await check(undefined)).toBe(`${file}: no such file`);
		expect(await check("wrong")).toBe("it is wrong");
		expect(await check("first")).toBe("");
		expect(applied).toEqual(["first", "first"]);
	});
});
