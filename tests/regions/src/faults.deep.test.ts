import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstRegions } from "@plinth/example-regions/plan";
import { Regions } from "@plinth/example-regions/regions";
import { seededRandom } from "@plinth/runtime/testing";
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
import { killServers } from "./servers/kill-servers.ts";
import { warningsLogged } from "./servers/server-logs.ts";
import { settle } from "./servers/settle.ts";
import { summary } from "./summary.ts";

const faultSeconds = seconds(14);
const clients = 8;
/** The mean time between two calls of one client, in milliseconds. */
const pauseMs = 160;
/** How long everything may take to settle. Chains of three lost owners take 30 s each. */
const settleMs = 300_000;

const basePort = await freePortsInARow(150);

describe("six servers in two regions", () => {
	const dataDirectory = mkdtempSync(join(tmpdir(), "plinth-regions-faults-"));
	const regions = new Regions({ dataDirectory, basePort, versions: { devices: "v1" } });
	let passed = false;
	beforeAll(() => regions.start());
	afterAll(async () => {
		await regions.stop();
		if (passed) {
			rmSync(dataDirectory, { recursive: true });
		}
	});

	it("keep all promises while they are killed", async () => {
		console.log(
			`seed ${seed}, ${faultSeconds} s; if it fails, data, logs and the history are in ${dataDirectory}`,
		);
		const random = seededRandom(seed);
		const shared: SharedState = {
			random,
			address: (deployment) => regions.get(deployment).address,
			history: [],
			known: new Map(),
			placeOfUid: new Map(),
			inUse: new Set(),
			notifier: new SendNotifier(),
			pauseMs,
		};
		const clientsEnd = new AbortController();
		const working = Array.from({ length: clients }, () => work(shared, clientsEnd.signal));
		const kills = await killServers(
			regions,
			shared.notifier,
			faultSeconds,
			seededRandom(seed + 1),
		).finally(() => clientsEnd.abort());
		await Promise.all(working);
		await Promise.all([...regions.servers.values()].map((server) => server.ready(180_000)));

		const began = performance.now();
		const unsettled = await settle(
			async () => endStateProblems(await readEndState(regions)),
			settleMs,
		);
		const settled = performance.now();
		for (const place of places) {
			await read(shared, place);
		}
		const { resources, shadows } = await readEndState(regions);
		writeFileSync(join(dataDirectory, "history.json"), JSON.stringify(shared.history, null, "\t"));
		const counts = summary(shared.history);
		console.log({
			kills,
			...counts,
			atTheEnd: { resources: resources.length, shadows: shadows.length },
			settledInMs: Math.round(settled - began),
			logged: warningsLogged(dataDirectory, [...regions.servers.keys()]),
		});
		expect(kills).not.toEqual({});
		expect(counts.writes.done).toBeGreaterThan(0);
		expect(counts.deletes.done).toBeGreaterThan(0);
		expect(unsettled).toEqual([]);
		expect(problemsOf(shared.history, firstRegions)).toEqual(noProblems);

		const left = await deleteEverything(regions, shared, settleMs);
		console.log({ emptiedInMs: Math.round(performance.now() - settled) });
		expect(left).toEqual([]);
		expect(problemsOf(shared.history, firstRegions)).toEqual(noProblems);
		passed = true;
	});
});
