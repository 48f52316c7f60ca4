import { seededRandom } from "@plinth/runtime/testing";
import { describeWith, seconds, seed } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { EtcdProcess } from "../etcd-process.fixture.ts";
import { problemsOf } from "./check-history.fixture.ts";
import { runUnderFaults } from "./fault-run.fixture.ts";

describeWith("etcd")("three servers on three etcd members", () => {
	let members: readonly EtcdProcess[];
	beforeAll(async () => {
		members = await EtcdProcess.startCluster(3);
	});
	afterAll(() => Promise.all(members.map((member) => member.dispose())));

	it("keep all promises while members are killed and stopped", async () => {
		const run = await runUnderFaults(members, seconds(15), seededRandom(seed));
		const { history, faults, counts, holds, brokenWatches } = run;
		const reads = history.reads.length;
		console.log({ seed, faults, ...counts, reads, holds: holds.length });
		expect(problemsOf(history)).toEqual([]);
		expect(brokenWatches).toEqual([]);
		expect(counts.done).toBeGreaterThan(0);
		const byStart = [...holds].sort((a, b) => a.fromMs - b.fromMs);
		for (const [index, { toMs }] of byStart.entries()) {
			const next = byStart[index + 1];
			expect(next === undefined || next.fromMs >= toMs).toBe(true);
		}
	});
});
