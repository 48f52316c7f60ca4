import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstRegions, planOf } from "@plinth/example-regions/plan";
import type { Regions } from "@plinth/example-regions/regions";
import { seededRandom } from "@plinth/runtime/testing";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { seconds, seed } from "@plinth/test-support";
import { freePortsInARow } from "@plinth/test-support/ports";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { read, work } from "./clients/client.ts";
import { places } from "./clients/places.ts";
import { SendNotifier } from "./clients/send-notifier.ts";
import type { SharedState } from "./clients/shared-state.ts";
import { endStateProblems } from "./end-state/check-end-state.ts";
import { readEndState } from "./end-state/read-end-state.ts";
import { noProblems, problemsOf } from "./history/problems.ts";
import { deleteEverything } from "./servers/delete-everything.ts";
import { killMembers } from "./servers/kill-members.ts";
import { killServers } from "./servers/kill-servers.ts";
import { anyServer, hasReadySibling, pairsOf } from "./servers/pairs.ts";
import { watchReachability } from "./servers/reachability.ts";
import { warningsLogged } from "./servers/server-logs.ts";
import { settle } from "./servers/settle.ts";
import { summary } from "./summary.ts";

const faultSeconds = seconds(8);
const clients = 3;
/** The mean time between two calls of one client, in milliseconds. */
const pauseMs = 300;
const settleMs = 300_000;
/** Twice the time of a lease. */
const unreachableMs = 20_000;
const basePort = await freePortsInARow(190);
const hasEtcd = spawnSync("etcd", ["--version"]).status === 0;

describe.skipIf(!hasEtcd)("two servers for each deployment, on one etcd of three members", () => {
	const dataDirectory = mkdtempSync(join(tmpdir(), "plinth-regions-pairs-"));
	const deployments = planOf(basePort).map(({ name }) => name);
	let members: readonly EtcdProcess[] = [];
	let regions: Regions;
	let passed = false;
	beforeAll(async () => {
		members = await EtcdProcess.startCluster(3);
		regions = pairsOf(members, { dataDirectory, basePort });
		await regions.start();
	});
	afterAll(async () => {
		await regions.stop();
		await Promise.all(members.map((member) => member.dispose()));
		if (passed) {
			rmSync(dataDirectory, { recursive: true });
		}
	});

	it("keep all promises and stay reachable while servers and members are killed", async () => {
		console.log(
			`seed ${seed}, ${faultSeconds} s; if it fails, logs and history are in ${dataDirectory}`,
		);
		const random = seededRandom(seed);
		const shared: SharedState = {
			random,
			address: (deployment) => anyServer(regions, deployment, random).address,
			history: [],
			known: new Map(),
			placeOfUid: new Map(),
			inUse: new Set(),
			notifier: new SendNotifier(),
			pauseMs,
		};
		const end = new AbortController();
		const working = Array.from({ length: clients }, () => work(shared, end.signal));
		const reaching = watchReachability(regions, deployments, end.signal);
		const killing = killMembers(members, seededRandom(seed + 2), end.signal);
		const kills = await killServers(
			regions,
			shared.notifier,
			faultSeconds,
			seededRandom(seed + 1),
			(server) => hasReadySibling(regions, server),
		)
			.then(async (killed) => {
				await somethingWritten(shared);
				return killed;
			})
			.finally(() => end.abort());
		await Promise.all(working);
		const unreachable = await reaching;
		const membersKilled = await killing;
		await Promise.all([...regions.servers.values()].map((server) => server.ready(180_000)));

		const unsettled = await settle(
			async () => endStateProblems(await readEndState(regions)),
			settleMs,
		);
		for (const place of places) {
			await read(shared, place);
		}
		writeFileSync(join(dataDirectory, "history.json"), JSON.stringify(shared.history, null, "\t"));
		const counts = summary(shared.history);
		console.log({
			...{ kills, membersKilled, unreachable },
			...counts,
			logged: warningsLogged(dataDirectory, [...regions.servers.keys()]),
		});
		expect(kills).not.toEqual({});
		expect(counts.writes.done).toBeGreaterThan(0);
		expect(unsettled).toEqual([]);
		expect(problemsOf(shared.history, firstRegions)).toEqual(noProblems);
		for (const [deployment, longest] of Object.entries(unreachable)) {
			expect(longest, deployment).toBeLessThan(unreachableMs);
		}
		expect(await deleteEverything(regions, shared, settleMs)).toEqual([]);
		passed = true;
	});
});

/** On a busy machine, the few writes so far may all name targets that do not exist yet. */
async function somethingWritten({ history }: SharedState): Promise<void> {
	for (let tries = 0; tries < 600 && !summary(history).writes.done; tries++) {
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}
