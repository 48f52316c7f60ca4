import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type ControllerSchema,
	GetControllerResponseSchema,
	ListControllersResponseSchema,
	Phase,
	Placement,
	ReconcileState,
	type ServerSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { systemClock } from "@plinth/runtime";
import { expect, it } from "vitest";
import { showController } from "./controller-detail.ts";
import { showControllers } from "./controllers.ts";

const plain = { width: undefined, color: false, clock: systemClock };

type ControllerInit = MessageInitShape<typeof ControllerSchema>;

const failing: ControllerInit = {
	name: "namespace-deletion",
	reconciles: {
		failed: 12n,
		lastFailure: {
			...{ key: "demo.Artist/default/miles", message: "there is no certificate for miles" },
			occurredAt: timestampFromMs(0),
		},
	},
	requests: { failing: 1, live: 2 },
	inPhase: durationFromMs(5_000),
};

function table(...controllers: readonly ControllerInit[]) {
	return tableOf([], ...controllers);
}

/** The lines of the table of a cluster with these servers. */
async function tableOf(
	servers: readonly MessageInitShape<typeof ServerSchema>[],
	...controllers: readonly ControllerInit[]
) {
	const response = create(ListControllersResponseSchema, {
		controllers: controllers.map((each) => ({
			...{ manages: "demo.v1.Artist", placement: Placement.SINGLETON, phase: Phase.RUNNING },
			...each,
		})),
		servers: [...servers],
	});
	return (await showControllers(response, "table", plain)).trimEnd().split("\n");
}

it("keeps errors readable at 80 columns, and leaves out nothing in a pipe", async () => {
	const response = create(ListControllersResponseSchema, {
		controllers: [{ ...failing, manages: "demo.v1.Artist", phase: Phase.RUNNING }],
	});
	const clock = { ...systemClock, now: () => 60_000 };
	const [heading = "", row = ""] = (
		await showControllers(response, "table", { ...plain, clock, width: 80 })
	).split("\n");
	expect(heading).toBe("NAME                PHASE    QUEUED  FAILING  LAST-ERROR");
	expect(row).toBe(
		"namespace-deletion  running  2       1        there is no certificate for miles…",
	);
	const [whole] = (await showControllers(response, "table", plain)).split("\n");
	expect(whole).toMatch(
		/^NAME +MANAGES +RUNS-ON +PHASE +SINCE +QUEUED +RUNNING +DONE +FAILED +FAILING +LAST-ERROR$/,
	);
});

it("shows no column for troubles that no controller has", async () => {
	const [heading, ...rows] = await table({ name: "one" }, { name: "two" });
	expect(heading).toMatch(/LAST-ERROR$/);
	expect(rows).toHaveLength(2);
});

it("shows which reconcile runs longest, and for how long", async () => {
	const [heading, well, slow] = await table(
		{ name: "well" },
		{
			name: "slow",
			stillRunning: [
				{ key: "demo.Artist/default/miles", running: durationFromMs(180_000) },
				{ key: "demo.Artist/default/nina", running: durationFromMs(61_000) },
			],
		},
	);
	expect(heading).toMatch(/LAST-ERROR +STILL-RUNNING$/);
	expect(well).not.toContain("miles");
	expect(slow).toContain("2 (default/miles for 3m)");
});

it("shows on which servers they run, and how much of a sharded one this server does", async () => {
	const [, ...rows] = await table(
		{ name: "single" },
		{ name: "every", placement: Placement.EACH_SERVER },
		{ name: "part", placement: Placement.SHARDED, shards: { open: [1, 4, 9], count: 16 } },
		{ name: "alone", placement: Placement.SHARDED },
	);
	const shown = ["one server", "each server", "3 of 16 shards", "all shards"];
	expect(rows.map((row, at) => row.includes(shown[at] ?? ""))).toEqual(shown.map(() => true));
});

it("shows how many reconciles fail now, and the last failure", async () => {
	const occurredAt = timestampFromMs(Date.now() - 5_000);
	const failure = { key: "demo.Artist/default//miles", message: "no such label", occurredAt };
	const [heading, row] = await table({
		name: "failing",
		requests: { failing: 3, active: 2 },
		reconciles: { failed: 12n, lastFailure: failure },
		lastError: { message: "an old error", occurredAt: timestampFromMs(Date.now() - 60_000) },
	});
	expect(heading).toMatch(/QUEUED +RUNNING +DONE +FAILED +FAILING +LAST-ERROR$/);
	expect(row).toMatch(/0 +2 +0 +12 +3 +no such label \(default\/miles, 5s ago\)$/);
});

it("shows the restarts of those that have failed", async () => {
	const [heading, well, failed] = await table({ name: "well" }, { name: "failed", restarts: 4 });
	expect(heading).toMatch(/RESTARTS$/);
	expect(well).not.toMatch(/4$/);
	expect(failed).toMatch(/4$/);
});

it("shows one controller with the resources that it fails at", async () => {
	const key = "demo.Artist/default/jazz/miles";
	const since = timestampFromMs(Date.now() - 180_000);
	const response = create(GetControllerResponseSchema, {
		controller: {
			...{ name: "singers", manages: "demo.v1.Artist", phase: Phase.RUNNING },
			inPhase: durationFromMs(600_000),
			requests: { failing: 250, active: 1, delayed: 250 },
			reconciles: { succeeded: 10n, failed: 30n, total: durationFromMs(4_000) },
		},
		failing: [
			{
				...{ controller: "singers", key, state: ReconcileState.DELAYED },
				dueIn: durationFromMs(8_000),
				failure: { key, message: "no such label", attempts: 12, since, occurredAt: since },
			},
			{
				...{ controller: "singers", key: "demo.Artist/a/b/soon", state: ReconcileState.DELAYED },
				dueIn: durationFromMs(400),
				failure: { key, message: "no such tune", attempts: 1, since, occurredAt: since },
			},
		],
		running: [
			{
				key: "demo.Artist/a/b/nina",
				state: ReconcileState.RUNNING,
				inState: durationFromMs(7_000),
			},
		],
	});
	const shown = await showController(response, "table", plain);
	expect(shown).toContain("phase:      running for 10m\n");
	expect(shown).toContain("reconciles: 10 succeeded, 30 failed, 100 ms on average\n");
	expect(shown).toContain("failing (250, the 2 that have failed for longest):\n");
	expect(shown).toMatch(/default\/jazz\/miles +failed, retry in 8s +12 +3m +no such label\n/);
	expect(shown).toMatch(/a\/b\/soon +failed, retry soon +1 +3m +no such tune\n/);
	expect(shown).toMatch(/a\/b\/nina +running for 7s\n/);
});

it("shows what earlier runs have left behind", async () => {
	const [, row] = await table({ name: "stuck", overdue: ["demo.Artist/default/miles"] });
	expect(row).toContain("1 (default/miles)");
});

it("shows how many resources can't be decoded, and why one of them can't", async () => {
	const [heading, row] = await table({
		name: "blind",
		undecodable: { count: 12, errors: ["demo.v1.Artist miles can't be decoded: malformed"] },
	});
	expect(heading).toMatch(/LAST-ERROR +UNDECODABLE$/);
	expect(row).toContain("12 (demo.v1.Artist miles can't be decoded: malformed)");
});

it("shows on how many of several servers they run, and singletons on which", async () => {
	const on = (...phases: readonly Phase[]) =>
		phases.map((phase, at) => ({ server: `server-${at}`, phase }));
	const { EACH_SERVER, SHARDED } = Placement;
	const { RUNNING, WAITING_FOR_LEASE } = Phase;
	const two = on(RUNNING, RUNNING);
	const all = Array.from({ length: 16 }, (_, shard) => shard);
	const [, ...rows] = await tableOf(
		[{ name: "server-0" }, { name: "server-1" }],
		{ name: "single", servers: on(WAITING_FOR_LEASE, RUNNING) },
		{ name: "nowhere", servers: on(WAITING_FOR_LEASE) },
		{ name: "every", placement: EACH_SERVER, servers: two },
		{ name: "some", placement: EACH_SERVER, servers: on(RUNNING) },
		{ name: "part", placement: SHARDED, servers: two, shards: { open: [1, 4, 9], count: 16 } },
		{ name: "whole", placement: SHARDED, servers: two, shards: { open: all, count: 16 } },
	);
	expect(rows.map((row) => row.split(/ {2,}/)[2])).toEqual([
		...["server-1", "no server", "2 servers", "1 of 2 servers"],
		...["2 servers, 3 of 16 shards", "2 servers"],
	]);
});

it("shows what one controller does on each of several servers", async () => {
	const key = "demo.Artist/default/jazz/miles";
	const response = create(GetControllerResponseSchema, {
		controller: {
			...{ name: "singers", placement: Placement.SHARDED, phase: Phase.RUNNING },
			servers: [
				{
					...{ server: "host/1", phase: Phase.RUNNING, restarts: 2 },
					requests: { failing: 1, live: 2, background: 1, active: 3 },
					reconciles: { succeeded: 40n, failed: 50n },
					shards: { open: [1, 2], count: 16 },
				},
				{ server: "host/2", phase: Phase.PRIMING, inPhase: durationFromMs(7_000) },
			],
		},
		failing: [{ key, state: ReconcileState.READY, server: "host/1" }],
		servers: [{ name: "host/1" }, { name: "host/2" }],
	});
	const shown = await showController(response, "table", plain);
	expect(shown).toMatch(/SERVER +PHASE .*FAILING +SHARDS +RESTARTS\n/);
	expect(shown).toMatch(/host\/1 +running +3 +3 +40 +50 +1 +2 +2\n/);
	expect(shown).toMatch(/host\/2 +priming +7s +0 +0 +0 +0 +0\n/);
	expect(shown).toMatch(/default\/jazz\/miles +host\/1 +queued\n/);
});

it("says which agents run a controller", async () => {
	const agents = ["host/1", "host/2"].map((server, at) => ({
		...{ server, isAgent: true },
		phase: at === 0 ? Phase.RUNNING : Phase.WAITING_FOR_LEASE,
	}));
	const singleton: ControllerInit = { name: "singers", servers: agents };
	const sharded = { placement: Placement.SHARDED, shards: { open: [1, 2], count: 16 } };
	const lines = await table(singleton, { ...singleton, ...sharded, name: "bookers" });
	expect(lines[1]).toMatch(/singers +demo.v1.Artist +host\/1 +running/);
	expect(lines[2]).toMatch(/bookers +demo.v1.Artist +2 agents, 2 of 16 shards +running/);
	const [idle] = (await table({ ...singleton, servers: agents.slice(1) })).slice(1);
	expect(idle).toMatch(/singers +demo.v1.Artist +no agent /);
	const response = create(GetControllerResponseSchema, { controller: singleton });
	const detail = await showController(response, "table", plain);
	expect(detail).toMatch(/^agents:?$[\s\S]*host\/1 +running[\s\S]*host\/2 +waiting/m);
});
