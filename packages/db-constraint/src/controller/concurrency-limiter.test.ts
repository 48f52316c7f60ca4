import { describe, expect, it } from "vitest";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";

describe("the concurrency limiter", () => {
	it("parks a task that finds no free slot, without holding slots for it, and names it when one is free", () => {
		const named: string[] = [];
		const limiter = new ConcurrencyLimiter(2, (task) => named.push(task));
		const release = limiter.tryAcquire("a", new Set(["slow"]));
		limiter.tryAcquire("b", new Set(["slow", "fast"]));
		expect(limiter.tryAcquire("c", new Set(["slow", "fast"]))).toBeUndefined();
		expect(limiter.used("fast")).toBe(1);
		expect(limiter.tryAcquire("d", new Set(["fast"]))).toBeDefined();
		expect(named).toEqual([]);
		release?.();
		expect(named).toEqual(["c"]);
		expect(limiter.tryAcquire("c", new Set(["slow"]))).toBeDefined();
		expect(limiter.used("slow")).toBe(2);
	});
});
