import process from "node:process";
import { PassThrough } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { processIo } from "./process-io.ts";

const { isTTY, columns } = process.stdout;
afterEach(() => {
	vi.restoreAllMocks();
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

it("takes Ctrl-C at a question as an interrupt, not as an answer", async () => {
	const stdin = new PassThrough();
	vi.spyOn(process, "stdin", "get").mockReturnValue(stdin as unknown as typeof process.stdin);
	vi.spyOn(process.stdout, "write").mockReturnValue(true);
	Object.assign(process.stdout, { isTTY: true, columns: 80 });
	const interrupt = new AbortController();
	const kill = vi.spyOn(process, "kill").mockImplementation(() => {
		interrupt.abort();
		return true;
	});
	const answer = processIo(interrupt.signal).ask("Delete? ");
	setImmediate(() => stdin.write("\x03"));
	await expect(answer).rejects.toThrow("aborted");
	expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, "SIGINT");
});
