import { describe, expect, it } from "vitest";
import { DeletionInbox } from "./deletion-inbox.ts";

const target = { group: "alpha", kind: "Thing", partition: "p", namespace: "n", region: "r1" };

describe("the inbox of deletions", () => {
	it("keeps each incarnation once, and removes completed deletions", () => {
		const inbox = new DeletionInbox();
		const first = { deploymentUid: "d", target: { ...target, name: "a" }, targetUid: "1" };
		const second = { ...first, targetUid: "2" };
		const name = inbox.add(first) ?? "";
		expect(inbox.add(first)).toBe(name);
		expect(inbox.add(second)).toBe(name);
		expect(inbox.of(name)).toEqual([first, second]);
		inbox.remove(first);
		expect(inbox.of(name)).toEqual([second]);
		expect(inbox.waiting("d")).toBe(1);
		inbox.remove(second);
		expect(inbox.waiting("d")).toBe(0);
		expect(inbox.of(name)).toEqual([]);
	});

	it("keeps those of a deployment and of its successor", () => {
		const inbox = new DeletionInbox();
		const before = { deploymentUid: "d", target: { ...target, name: "a" }, targetUid: "1" };
		const after = { ...before, deploymentUid: "e" };
		const name = inbox.add(before) ?? "";
		inbox.delay(before, 1_000);
		inbox.add(after);
		expect(inbox.of(name)).toEqual([before, after]);
		expect(inbox.dueMs(after)).toBe(Number.NEGATIVE_INFINITY);
		inbox.remove(before);
		expect(inbox.of(name)).toEqual([after]);
		expect([inbox.waiting("d"), inbox.waiting("e")]).toEqual([0, 1]);
	});

	it("limits the deletions per deployment", () => {
		const inbox = new DeletionInbox();
		const add = (deploymentUid: string, i: number) =>
			inbox.add({ deploymentUid, target: { ...target, name: `x${i}` }, targetUid: `${i}` });
		for (let i = 0; i < 10_000; i++) {
			expect(add("much", i)).toBeDefined();
		}
		expect(add("much", 10_000)).toBeUndefined();
		expect(add("little", 10_000)).toBeDefined();
	});
});
