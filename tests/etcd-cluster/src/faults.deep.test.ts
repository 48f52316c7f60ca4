import { setTimeout } from "node:timers/promises";
import { seededRandom } from "@plinth/runtime/testing";
import { describeWith, seconds, seed } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Cluster, startCluster } from "./cluster/cluster.ts";
import { disturb, type FaultCounts } from "./cluster/disturb.ts";
import { readEtcdRecord } from "./cluster/etcd-record.ts";
import { writeTasks } from "./cluster/pair.ts";
import { errorsLogged } from "./cluster/server-log.ts";
import { holdCount } from "./history/check-leases.ts";
import { noProblems, problemsOf } from "./history/problems.ts";
import { runClients } from "./run.ts";
import { summary } from "./summary.ts";

/** The mean time between two operations of one client, in milliseconds. */
const pauseMs = 25;

describeWith("etcd")("three servers on three members of etcd", () => {
	let cluster: Cluster;
	beforeAll(async () => {
		cluster = await startCluster({ members: 3, servers: 3 });
	});
	afterAll(() => cluster?.dispose());

	it("keep all promises while servers and members are killed and stopped", async () => {
		console.log({ seed, seconds: seconds(11) });
		const random = seededRandom(seed);
		let faults: FaultCounts | undefined;
		const first = await cluster.servers[0]?.life(new AbortController().signal);
		if (first !== undefined) {
			await writeTasks(first, ["", "", ""]);
		}
		const { history, restarts } = await runClients({
			targets: cluster.servers,
			random,
			pause: () => setTimeout(random.next() * 2 * pauseMs),
			meanwhile: async () => {
				faults = await disturb(cluster, seconds(11), {
					members: seededRandom(seed + 1),
					servers: seededRandom(seed + 2),
				});
			},
		});
		const record = await readEtcdRecord(cluster);
		console.log({ faults, ...summary(history), leaseHolds: holdCount(record) });
		const errors = errorsLogged(cluster.servers.map(({ stderr }) => stderr));
		const [revisions, effects] = [record.revisions, record.effects.length];
		console.log({ revisions, effects, watchRestarts: restarts.length, errors });
		expect(problemsOf(history, record)).toEqual(noProblems);
		const completed = history.sessions.filter(({ complete }) => complete);
		expect(completed.length).toBeGreaterThanOrEqual(cluster.servers.length);
		expect(record.effects).not.toEqual([]);
	});
});
