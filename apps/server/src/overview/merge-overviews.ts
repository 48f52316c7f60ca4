import { create } from "@bufbuild/protobuf";
import {
	type Duration,
	DurationSchema,
	durationFromMs,
	durationMs,
	timestampFromMs,
} from "@bufbuild/protobuf/wkt";
import { mergeControllers, type ReportingServer, type ServerReport } from "@plinth/controller";
import type { Controller } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import {
	type ControllerOverview,
	ControllerOverviewSchema,
	type Overview,
	OverviewSchema,
	type Process,
	ProcessSchema,
	type ServerOverview,
	ServerOverviewSchema,
	type StorageOverview,
	StorageOverviewSchema,
	type TypeOverview,
	TypeOverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

import { mergeLeases } from "../leases/lease-overviews.ts";
import { durationQuantile } from "../operations/recent-commits.ts";

/** The overviews of all servers of a cluster, each of itself alone and without rates. */
export interface OverviewReports {
	readonly own: Overview;
	/** Of all servers, the called one included. */
	readonly all: readonly (ServerReport<Overview> & { readonly server: ReportingServer })[];
}

/** One overview of all servers. Its rates are measured since the reports `before`, and 0 without them. */
export function mergeOverviews(reports: OverviewReports, before?: OverviewReports): Overview {
	const { own } = reports;
	const all = reports.all.toSorted((a, b) => (orderOf(a.server) < orderOf(b.server) ? -1 : 1));
	const former = new Map(before?.all.map((each) => [keyOf(each.server), each.response]));
	const measured = all.flatMap(({ server, response }): readonly Measured[] =>
		response === undefined ? [] : [measuredBetween(response, former.get(keyOf(server)))],
	);
	const ownMeasured = measuredBetween(own, before?.own);
	return create(OverviewSchema, {
		...(own.takenAt && { takenAt: own.takenAt }),
		...(ownMeasured.ms > 0 && { rateInterval: durationFromMs(ownMeasured.ms) }),
		servers: all.map((report) => serverOverview(report, former.get(keyOf(report.server)))),
		controllers: controllersOf(measured),
		storage: clusterStorage(own, measured),
		types: typesOf(ownMeasured),
		...mergeLeases(measured.map(({ now }) => now)),
	});
}

/** A report of a server, and an earlier one of the same run of the server. */
interface Measured {
	readonly now: Overview;
	readonly before: Overview | undefined;
	/** The time between them in whole millims; 0 if there is no earlier one. */
	readonly ms: number;
}

function measuredBetween(now: Overview, before: Overview | undefined): Measured {
	const ms = Math.round(uptimeMs(now) - uptimeMs(before));
	return before === undefined || ms <= 0 ? { now, before: undefined, ms: 0 } : { now, before, ms };
}

/** How much a counter has grown per second. A counter that is less than before has begun again. */
function rateOf(now: number, before: number | undefined, ms: number): number {
	if (before === undefined || ms === 0) {
		return 0;
	}
	return ((now < before ? now : now - before) / ms) * 1_000;
}

function serverOverview(
	{ server, response, missing = "" }: OverviewReports["all"][number],
	before: Overview | undefined,
): ServerOverview {
	const { name, address, startedAtMs, version } = server;
	const described = { name, address, version, startedAt: timestampFromMs(startedAtMs) };
	const reported = response?.servers[0];
	if (response === undefined || reported === undefined) {
		return create(ServerOverviewSchema, { server: { ...described, missing } });
	}
	const measured = measuredBetween(response, before);
	const { process, storage } = reported;
	const holdsLease = reported.server?.holdsLease;
	return create(ServerOverviewSchema, {
		server: { ...described, ...(holdsLease !== undefined && { holdsLease }) },
		...(process && { process: processWithRates(process, measured) }),
		...(storage && { storage: storageWithRates(storage, measured) }),
	});
}

function processWithRates(process: Process, { before, ms }: Measured): Process {
	const former = before?.servers[0]?.process?.cpuTime;
	const cpuMs = process.cpuTime === undefined ? 0 : durationMs(process.cpuTime);
	const cpu = rateOf(cpuMs, former && durationMs(former), ms) / 1_000;
	return create(ProcessSchema, { ...process, cpu });
}

function storageWithRates(storage: StorageOverview, { before, ms }: Measured): StorageOverview {
	const former = before?.servers[0]?.storage?.commits;
	return create(StorageOverviewSchema, {
		...storage,
		...commitQuantiles(storage.commitDurations),
		commitsPerSecond: rateOf(
			Number(storage.commits),
			former === undefined ? undefined : Number(former),
			ms,
		),
	});
}

/** The storage as the called server sees it, with what all servers count. */
function clusterStorage(own: Overview, all: readonly Measured[]): StorageOverview {
	const seen = own.storage ?? create(StorageOverviewSchema);
	const each = all.flatMap((measured) => {
		const { storage } = measured.now;
		return storage === undefined ? [] : [storageWithRates(storage, measured)];
	});
	return create(StorageOverviewSchema, {
		...seen,
		commits: each.reduce((sum, { commits }) => sum + commits, 0n),
		commitsPerSecond: each.reduce((sum, { commitsPerSecond }) => sum + commitsPerSecond, 0),
		watches: each.reduce((sum, { watches }) => sum + watches, 0n),
		leases: each.reduce((sum, { leases }) => sum + leases, 0),
		...recentCommits(each),
	});
}

/** The commits of the last minute of all servers; nothing of those whose version does not count them. */
function recentCommits(
	all: readonly StorageOverview[],
): Pick<StorageOverview, "commitDurations" | "batches" | "batchedCommits"> & CommitQuantiles {
	const buckets = Math.max(0, ...all.map(({ commitDurations }) => commitDurations.length));
	const sum = (count: (storage: StorageOverview) => bigint) =>
		all.reduce((total, storage) => total + count(storage), 0n);
	const commitDurations = Array.from({ length: buckets }, (_, bucket) =>
		sum((storage) => storage.commitDurations[bucket] ?? 0n),
	);
	return {
		...{ commitDurations, ...commitQuantiles(commitDurations) },
		batches: sum(({ batches }) => batches),
		batchedCommits: sum(({ batchedCommits }) => batchedCommits),
	};
}

type CommitQuantiles = Pick<StorageOverview, "commitMedian" | "commitP99">;

/** The quantiles of durations; none without commits. */
function commitQuantiles(durations: readonly bigint[]): CommitQuantiles {
	const counts = durations.map(Number);
	const [medianMs, p99Ms] = [durationQuantile(counts, 0.5), durationQuantile(counts, 0.99)];
	return {
		...(medianMs !== undefined && { commitMedian: durationOfMs(medianMs) }),
		...(p99Ms !== undefined && { commitP99: durationOfMs(p99Ms) }),
	};
}

/** Rounds to whole microseconds. */
function durationOfMs(ms: number): Duration {
	const micros = Math.round(ms * 1_000);
	return create(DurationSchema, {
		seconds: BigInt(Math.floor(micros / 1e6)),
		nanos: (micros % 1e6) * 1_000,
	});
}

/** The types as the called server counts them: it also sees the writes of the others, so these are not added. */
function typesOf({ now, before, ms }: Measured): TypeOverview[] {
	const former = new Map(before?.types.map(({ type, writes }) => [type, Number(writes)]));
	return now.types.map((each) =>
		create(TypeOverviewSchema, {
			...each,
			// A type that was not written before has a counter that begins at 0.
			writesPerSecond: rateOf(Number(each.writes), before && (former.get(each.type) ?? 0), ms),
		}),
	);
}

function controllersOf(all: readonly Measured[]): ControllerOverview[] {
	const measured = all.flatMap(({ now, before, ms }) => {
		const former = new Map(before?.controllers.map((each) => [each.controller?.name, each]));
		return now.controllers.flatMap((overview) => {
			const { controller } = overview;
			return controller === undefined
				? []
				: [{ controller, overview, former: former.get(controller.name)?.controller, ms }];
		});
	});
	return [...Map.groupBy(measured, ({ controller }) => controller.name).values()].map((each) => {
		const rate = (count: (controller: Controller) => number) =>
			each.reduce(
				(sum, { controller, former, ms }) =>
					sum + rateOf(count(controller), former && count(former), ms),
				0,
			);
		const controller = mergeControllers(each.map((one) => one.controller));
		return create(ControllerOverviewSchema, {
			...(controller && { controller }),
			reconcilesPerSecond: rate(
				({ reconciles }) => Number(reconciles?.succeeded ?? 0) + Number(reconciles?.failed ?? 0),
			),
			failuresPerSecond: rate(({ reconciles }) => Number(reconciles?.failed ?? 0)),
			stillRunning: each.reduce((sum, { overview }) => sum + overview.stillRunning, 0),
		});
	});
}

function uptimeMs(overview: Overview | undefined): number {
	const uptime = overview?.servers[0]?.process?.uptime;
	return uptime === undefined ? 0 : durationMs(uptime);
}

/** In an order that does not depend on which server is called. */
function orderOf({ name, address }: ReportingServer): string {
	return `${name}\0${address}`;
}

/** Tells a server from others, and from itself before it was restarted. */
function keyOf({ name, address, startedAtMs }: ReportingServer): string {
	return `${name}\0${address}\0${startedAtMs}`;
}
