import { Code, ConnectError } from "@connectrpc/connect";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { retryOnConflict } from "./retry-on-conflict.ts";

describe("retryOnConflict", () => {
	/** Options with a clock on which no delay takes time. */
	const runtime = {
		...systemRuntime,
		clock: {
			...systemRuntime.clock,
			setTimer(_delayMs: number, callback: () => void) {
				queueMicrotask(callback);
				return { cancel: () => {} };
			},
		},
	};

	it("repeats what was Aborted, up to 20 times", async () => {
		let attempts = 0;
		const conflicts = (count: number) => async () => {
			attempts += 1;
			if (attempts <= count) {
				throw new ConnectError("CAS operation failed", Code.Aborted);
			}
			return attempts;
		};
		expect(await retryOnConflict(conflicts(19), { runtime })).toBe(20);
		attempts = 0;
		await expect(retryOnConflict(conflicts(20), { runtime })).rejects.toMatchObject({
			code: Code.Aborted,
		});
		attempts = 0;
		await expect(retryOnConflict(conflicts(2), { runtime, attempts: 2 })).rejects.toMatchObject({
			code: Code.Aborted,
		});
	});

	it("does not repeat other failures, nor after its signal has aborted", async () => {
		let attempts = 0;
		const fails = (code: Code) => () => {
			attempts += 1;
			throw new ConnectError("no", code);
		};
		await expect(retryOnConflict(fails(Code.NotFound), { runtime })).rejects.toMatchObject({
			code: Code.NotFound,
		});
		const signal = AbortSignal.abort(new Error("stopped"));
		await expect(retryOnConflict(fails(Code.Aborted), { runtime, signal })).rejects.toThrow(
			"stopped",
		);
		expect(attempts).toBe(2);
	});
});
