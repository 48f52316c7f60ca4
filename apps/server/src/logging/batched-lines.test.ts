import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { setImmediate as nextRound } from "node:timers/promises";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { BatchedLines } from "./batched-lines.ts";

/** A file to which nothing can be written: there is no space. */
const fullDisk = "/dev/full";

function batches() {
	const written: string[] = [];
	const lines = new BatchedLines({ write: (text) => void written.push(text) });
	const logger = pino({ base: null, timestamp: false }, lines);
	return { written, lines, logger };
}

const info = (msg: string) => `{"level":30,"msg":"${msg}"}\n`;

describe("batched lines", () => {
	it("passes on the lines of a round together, in their order", async () => {
		const { written, logger } = batches();
		logger.info("a");
		process.nextTick(() => logger.info("c"));
		await Promise.resolve();
		logger.info("b");
		expect(written).toEqual([]);
		await nextRound();
		expect(written).toEqual([info("a") + info("b") + info("c")]);
		logger.info("d");
		await nextRound();
		expect(written).toEqual([info("a") + info("b") + info("c"), info("d")]);
	});

	it("passes on warnings and errors at once, after the lines before them", async () => {
		const { written, logger } = batches();
		logger.info("a");
		logger.warn("b");
		logger.error("c");
		expect(written.map((text) => text.split("\n").length - 1)).toEqual([2, 1]);
		expect(written[0]?.startsWith(info("a"))).toBe(true);
		await nextRound();
		expect(written).toHaveLength(2);
	});

	it("passes on many lines at once", () => {
		const { written, logger } = batches();
		const long = "x".repeat(1_000);
		for (let index = 0; index < 100; index++) {
			logger.info(long);
		}
		expect(written).toHaveLength(1);
		expect(written[0]?.length).toBeGreaterThanOrEqual(64 * 1_024);
	});

	it("passes on each line at once when the process exits", () => {
		const { written, lines, logger } = batches();
		logger.info("a");
		lines.exit();
		logger.info("b");
		expect(written).toEqual([info("a"), info("b")]);
	});

	it("loses no line of a process that exits", () => {
		const logger = JSON.stringify(import.meta.resolve("./pino-logger.ts"));
		const { stderr } = spawnSync(
			process.execPath,
			[
				"--input-type=module",
				"--eval",
				`import { createLogger } from ${logger};
				const logger = createLogger();
				process.on("exit", () => logger.info("exiting"));
				logger.info("last");
				process.exit(0);`,
			],
			{ encoding: "utf8" },
		);
		expect(stderr.match(/"msg":"\w+"/g)).toEqual(['"msg":"last"', '"msg":"exiting"']);
	});

	it.skipIf(!existsSync(fullDisk))("does not end a process whose lines can't be written", () => {
		const logger = JSON.stringify(import.meta.resolve("./pino-logger.ts"));
		const full = openSync(fullDisk, "w");
		const { status, stdout } = spawnSync(
			process.execPath,
			[
				"--input-type=module",
				"--eval",
				`import { setImmediate as nextRound } from "node:timers/promises";
				import { createLogger } from ${logger};
				const logger = createLogger();
				for (const level of ["info", "error", "info"]) {
					logger[level]({}, "x".repeat(600_000));
					await nextRound();
				}
				console.log("alive");`,
			],
			{ encoding: "utf8", stdio: ["ignore", "pipe", full] },
		);
		closeSync(full);
		expect({ status, stdout }).toEqual({ status: 0, stdout: "alive\n" });
	});
});
