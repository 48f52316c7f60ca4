import { describe, expect, it } from "vitest";
import type { Deletion } from "../node/constraint-context.ts";
import { shadowName } from "../shadow/shadow.ts";
import { DeletionInbox, type DeletionInboxOptions } from "./deletion-inbox.ts";

const target = { group: "alpha", kind: "Thing", partition: "p", namespace: "n", region: "r1" };

function inboxOf(options: Partial<DeletionInboxOptions> = {}) {
	return new DeletionInbox({
		...{ perDeployment: 10, isControlled: () => true, onRemoved: () => {} },
		...options,
	});
}

function deletionOf(name: string, deploymentUid = "d"): Deletion {
	return { deploymentUid, target: { ...target, name }, targetUid: name };
}

describe("the inbox of deletions", () => {
	it("keeps each incarnation once, and removes completed deletions", () => {
		const inbox = inboxOf();
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
		const inbox = inboxOf();
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
		const inbox = inboxOf();
		for (let i = 0; i < 10; i++) {
			expect(inbox.add(deletionOf(`x${i}`, "much"))).toBeDefined();
		}
		expect(inbox.add(deletionOf("x10", "much"))).toBeUndefined();
		expect(inbox.add(deletionOf("x10", "little"))).toBeDefined();
	});

	it("makes room by those that are due last, and keeps those that were never tried", () => {
		const removed: string[] = [];
		const inbox = inboxOf({ onRemoved: ({ targetUid }) => removed.push(targetUid) });
		for (let i = 0; i < 10; i++) {
			inbox.add(deletionOf(`x${i}`));
		}
		for (const [i, dueMs] of [
			[3, 1_000],
			[5, 3_000],
			[7, 2_000],
		] as const) {
			inbox.delay(deletionOf(`x${i}`), dueMs);
		}
		for (const name of ["y0", "y1", "y2"]) {
			expect(inbox.add(deletionOf(name))).toBeDefined();
		}
		expect(inbox.add(deletionOf("y3"))).toBeUndefined();
		expect(removed).toEqual(["x5", "x7", "x3"]);
		expect(inbox.waiting("d")).toBe(10);
	});

	it("makes room by those that another server controls first", () => {
		const removed: string[] = [];
		const others = shadowName(deletionOf("x4").target);
		const inbox = inboxOf({
			isControlled: (name) => name !== others,
			onRemoved: ({ targetUid }) => removed.push(targetUid),
		});
		for (let i = 0; i < 10; i++) {
			inbox.add(deletionOf(`x${i}`));
			inbox.delay(deletionOf(`x${i}`), 1_000);
		}
		expect(inbox.add(deletionOf("y"))).toBeDefined();
		expect(removed).toEqual(["x4"]);
	});

	it("seldom looks for those that make room", () => {
		let asked = 0;
		const inbox = inboxOf({
			perDeployment: 1_000,
			isControlled: () => {
				asked += 1;
				return true;
			},
		});
		for (let i = 0; i < 5_000; i++) {
			const deletion = deletionOf(`x${i}`);
			expect(inbox.add(deletion)).toBeDefined();
			inbox.delay(deletion, i);
		}
		expect(asked).toBeLessThan(11 * 5_000);
	});

	it("looks once for those that make room while none can, until one was tried or removed or the shards change", () => {
		let asked = 0;
		let isControlled = true;
		const inbox = inboxOf({
			perDeployment: 1_000,
			isControlled: () => {
				asked += 1;
				return isControlled;
			},
		});
		const addAll = (count: number) => {
			const names = Array.from({ length: count }, () => `x${added++}`);
			return names.filter((name) => inbox.add(deletionOf(name)) !== undefined).length;
		};
		let added = 0;
		expect(addAll(2_000)).toBe(1_000);
		expect(inbox.add(deletionOf("x0", "other"))).toBeDefined();
		expect(asked).toBe(1_000);
		inbox.delay(deletionOf("x1"), 1_000);
		expect(addAll(1_000)).toBe(1);
		expect(asked).toBe(3_000);
		inbox.remove(deletionOf("x2"));
		expect(addAll(1_000)).toBe(1);
		expect(asked).toBe(4_000);
		isControlled = false;
		expect(addAll(1)).toBe(0);
		inbox.controlChanged();
		expect(addAll(1)).toBe(1);
		expect(inbox.waiting("d")).toBe(901);
	});
});
