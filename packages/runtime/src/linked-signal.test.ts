import { describe, expect, it } from "vitest";
import { linkedSignal } from "./linked-signal.ts";

describe("linkedSignal", () => {
	it("aborts with the reason of the first source that aborts", () => {
		const [first, second] = [new AbortController(), new AbortController()];
		using linked = linkedSignal(first.signal, second.signal);
		expect(linked.signal.aborted).toBe(false);
		second.abort("second");
		first.abort("first");
		expect(linked.signal.reason).toBe("second");
	});

	it("has aborted if a source had before", () => {
		using linked = linkedSignal(new AbortController().signal, AbortSignal.abort("over"));
		expect(linked.signal.reason).toBe("over");
	});

	it("does not abort once it is disposed of", () => {
		const source = new AbortController();
		const linked = linkedSignal(source.signal);
		linked[Symbol.dispose]();
		source.abort();
		expect(linked.signal.aborted).toBe(false);
	});
});
