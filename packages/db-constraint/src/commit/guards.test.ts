import { systemRuntime } from "@plinth/runtime";
import { CasFailure, createMemoryBackend, decorateBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { readRecord } from "../shadow/shadow-records.ts";
import { Guards, guardName } from "./guards.ts";

const key = (name: string) => ({
	...{ group: "alpha", kind: "Thing", region: "r1", partition: "default", namespace: "default" },
	name,
});

/** Guards over a storage in memory, and the number of commits to it. */
function counted(beforeCommit: () => Promise<void> = async () => {}) {
	const memory = createMemoryBackend({ runtime: systemRuntime });
	const counts = { commits: 0 };
	const backend = decorateBackend(memory, {
		async commit(...args) {
			counts.commits += 1;
			await beforeCommit();
			return memory.commit(...args);
		},
	});
	return { memory, counts, guards: new Guards(backend, systemRuntime) };
}

describe("all guards", () => {
	it("are changed in few commits, so that writes fail that have read any of them before", async () => {
		const { memory, counts, guards } = counted();
		const targets = Array.from({ length: 500 }, (_, at) => key(`t-${at}`));
		for (const name of new Set(targets.map(guardName))) {
			await memory.commit(
				await guards.asserts([targets.find((each) => guardName(each) === name)!]),
			);
		}
		const before = await guards.asserts(targets);
		expect(before.every(({ op }) => op === "assert")).toBe(true);
		await guards.changeAll();
		expect(counts.commits).toBe(4);
		for (const assert of before) {
			await expect(memory.commit([assert])).rejects.toThrow(CasFailure);
		}
	});

	it("are changed although other servers change some of them at the same time", async () => {
		let others = 3;
		const { memory, counts, guards } = counted(async () => {
			if (others > 0) {
				others -= 1;
				await new Guards(memory, systemRuntime).change(key("t-1"));
			}
		});
		await guards.changeAll();
		expect(counts.commits).toBeGreaterThan(4);
		const stored = await readRecord(memory, guardName(key("t-1")));
		expect(stored?.record.case).toBe("guard");
	});
});
