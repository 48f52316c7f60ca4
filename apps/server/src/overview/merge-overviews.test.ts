import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Phase } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import {
	LeaseKind,
	type Overview,
	OverviewSchema,
	type StorageOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { describe, expect, it } from "vitest";
import { mergeOverviews, type OverviewReports } from "./merge-overviews.ts";

const first = { name: "host/1", address: "http://10.0.0.1", startedAtMs: 1_000, version: "1.0.0" };
const second = { name: "host/2", address: "http://10.0.0.2", startedAtMs: 2_000, version: "1.0.0" };

interface Counts {
	readonly uptimeMs: number;
	readonly commits?: number;
	readonly cpuMs?: number;
	readonly succeeded?: number;
	readonly failed?: number;
	readonly writes?: number;
	readonly phase?: Phase;
	readonly durations?: readonly number[];
	readonly batches?: readonly [number, number];
	readonly leases?: readonly string[];
}

/** What a server reports of itself. */
function report(counts: Counts): Overview {
	const { uptimeMs, commits = 0, cpuMs = 0, succeeded = 0, failed = 0, writes } = counts;
	const storage = {
		...{ kind: "etcd", version: "7", resources: 10n, watches: 3n, leases: 1 },
		commits: BigInt(commits),
		commitDurations: (counts.durations ?? []).map(BigInt),
		batches: BigInt(counts.batches?.[0] ?? 0),
		batchedCommits: BigInt(counts.batches?.[1] ?? 0),
	};
	return create(OverviewSchema, {
		servers: [
			{
				server: { holdsLease: false },
				process: { uptime: durationFromMs(uptimeMs), cpuTime: durationFromMs(cpuMs) },
				storage,
			},
		],
		storage,
		leases: (counts.leases ?? []).map((name) => ({ kind: LeaseKind.SERVER, name })),
		leasesTotal: counts.leases?.length ?? 0,
		controllers: [
			{
				controller: {
					name: "singers",
					phase: counts.phase ?? Phase.RUNNING,
					requests: { failing: 1, live: 2 },
					reconciles: { succeeded: BigInt(succeeded), failed: BigInt(failed) },
				},
				stillRunning: 1,
			},
		],
		types:
			writes === undefined
				? []
				: [{ type: "demo.v2.Artist", resources: 10n, writes: BigInt(writes) }],
	} satisfies MessageInitShape<typeof OverviewSchema>);
}

/** The reports of both servers, the called one being the first. */
function reports(own: Overview, other?: Overview, missing?: string): OverviewReports {
	const server = { server: second, response: other };
	return {
		own,
		all: [
			missing === undefined ? server : { ...server, missing },
			{ server: first, response: own },
		],
	};
}

describe("the overviews of several servers", () => {
	it("are one: servers by name, sums of what each counts, and resources of the called one", () => {
		const merged = mergeOverviews(
			reports(
				report({ uptimeMs: 5_000, commits: 4, writes: 9 }),
				report({ uptimeMs: 900, commits: 6, writes: 8, phase: Phase.WAITING_FOR_LEASE }),
			),
		);
		expect(merged.servers.map(({ server }) => server?.name)).toEqual(["host/1", "host/2"]);
		expect(merged.storage).toMatchObject({
			...{ kind: "etcd", resources: 10n, commits: 10n, watches: 6n, leases: 2 },
		});
		expect(merged.types).toMatchObject([{ resources: 10n, writes: 9n, writesPerSecond: 0 }]);
		expect(merged.controllers).toMatchObject([
			{
				controller: { phase: Phase.RUNNING, requests: { failing: 2, live: 4 } },
				stillRunning: 2,
			},
		]);
		expect(merged.rateInterval).toBeUndefined();
	});

	it("have rates of each server over its own time, and of all servers together", () => {
		const before = reports(
			report({ uptimeMs: 5_000, commits: 4, cpuMs: 100, succeeded: 1, writes: 10 }),
			report({ uptimeMs: 1_000, commits: 6, failed: 3 }),
		);
		const merged = mergeOverviews(
			reports(
				report({ uptimeMs: 7_000, commits: 10, cpuMs: 1_100, succeeded: 9, writes: 14 }),
				report({ uptimeMs: 2_000, commits: 7, failed: 5 }),
			),
			before,
		);
		expect(merged.rateInterval).toEqual(durationFromMs(2_000));
		expect(merged.servers).toMatchObject([
			{ process: { cpu: 0.5 }, storage: { commitsPerSecond: 3 } },
			{ process: { cpu: 0 }, storage: { commitsPerSecond: 1 } },
		]);
		expect(merged.storage?.commitsPerSecond).toBe(4);
		expect(merged.controllers).toMatchObject([{ reconcilesPerSecond: 6, failuresPerSecond: 2 }]);
		expect(merged.types).toMatchObject([{ writesPerSecond: 2 }]);
	});

	it("name a server whose report is missing, which adds nothing", () => {
		const own = report({ uptimeMs: 5_000, commits: 4 });
		const before = reports(own, report({ uptimeMs: 1_000, commits: 6 }));
		const merged = mergeOverviews(reports(own, undefined, "did not respond in time"), before);
		expect(merged.servers).toMatchObject([
			{ server: { missing: "" } },
			{ server: { missing: "did not respond in time", address: second.address } },
		]);
		expect(merged.servers[1]?.process).toBeUndefined();
		expect(merged.storage?.commits).toBe(4n);
	});

	it("have no rate for a server that was started since, and none below 0 after a restore", () => {
		const before = reports(
			report({ uptimeMs: 5_000, writes: 100 }),
			report({ uptimeMs: 9_000, commits: 50 }),
		);
		const merged = mergeOverviews(
			reports(report({ uptimeMs: 6_000, writes: 3 }), report({ uptimeMs: 100, commits: 2 })),
			before,
		);
		expect(merged.types).toMatchObject([{ writesPerSecond: 3 }]);
		expect(merged.servers[1]?.storage?.commitsPerSecond).toBe(0);
	});

	it("have an interval that can be sent, whatever the times of the reports are", () => {
		for (let ms = 1; ms < 3_000; ms += 7) {
			const merged = mergeOverviews(
				reports(report({ uptimeMs: 5_000 + ms })),
				reports(report({ uptimeMs: 5_000 })),
			);
			expect(() => toBinary(OverviewSchema, merged)).not.toThrow();
		}
	});

	it("have the durations and batches of the commits of each server, and of all together", () => {
		const merged = mergeOverviews(
			reports(
				report({ uptimeMs: 5_000, durations: [0, 0, 0, 98, 0, 0], batches: [10, 98] }),
				report({ uptimeMs: 900, durations: [0, 0, 0, 0, 0, 2], batches: [2, 2] }),
			),
		);
		const ms = ({ commitMedian, commitP99 }: Partial<StorageOverview>) =>
			[commitMedian, commitP99].map((each) => Math.round((each?.nanos ?? 0) / 1e5) / 10);
		expect(merged.servers.map(({ storage }) => ms(storage ?? {}))).toEqual([
			[0.8, 1],
			[3.5, 5],
		]);
		expect(ms(merged.storage ?? {})).toEqual([0.8, 3.5]);
		expect(merged.storage).toMatchObject({
			...{ commitDurations: [0n, 0n, 0n, 98n, 0n, 2n], batches: 12n, batchedCommits: 100n },
		});
		expect(() => toBinary(OverviewSchema, merged)).not.toThrow();
	});

	it("say nothing of the durations of a server that does not count them, or without commits", () => {
		const merged = mergeOverviews(
			reports(report({ uptimeMs: 5_000 }), report({ uptimeMs: 900, durations: [0, 0] })),
		);
		for (const storage of [merged.storage, ...merged.servers.map((each) => each.storage)]) {
			expect(storage).toBeDefined();
			expect([storage?.commitMedian, storage?.commitP99]).toEqual([undefined, undefined]);
		}
		expect(merged.servers.map(({ storage }) => storage?.commitDurations.length)).toEqual([0, 2]);
	});

	it("have the leases of all servers that have responded", () => {
		const own = report({ uptimeMs: 5_000, leases: ["b"] });
		const merged = mergeOverviews(reports(own, report({ uptimeMs: 900, leases: ["a"] })));
		expect(merged).toMatchObject({ leases: [{ name: "a" }, { name: "b" }], leasesTotal: 2 });
		expect(mergeOverviews(reports(own, undefined, "silent"))).toMatchObject({ leasesTotal: 1 });
	});

	it("have a rate for a type that was written for the first time", () => {
		const merged = mergeOverviews(
			reports(report({ uptimeMs: 3_000, writes: 4 })),
			reports(report({ uptimeMs: 1_000 })),
		);
		expect(merged.types).toMatchObject([{ writesPerSecond: 2 }]);
	});
});
