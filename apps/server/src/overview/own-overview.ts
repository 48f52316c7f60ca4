import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
	type ControllerReports,
	type ControllerState,
	controllerMessage,
	type ReportingServer,
} from "@plinth/controller";
import {
	type ControllerOnServer,
	ControllerOnServerSchema,
	ControllerSchema,
	type Queue,
	QueueSchema,
	type Reconciles,
	ReconcilesSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import {
	type ControllerOverview,
	ControllerOverviewSchema,
	type Overview,
	OverviewSchema,
	type ProcessSchema,
	type StorageOverviewSchema,
	type TypeOverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import type { Clock } from "@plinth/runtime";
import type { StorageStatistics } from "@plinth/storage";
import type { KnownLeases } from "../leases/lease-overviews.ts";
import { leasesOfServer } from "../leases/lease-overviews.ts";
import type { CommitCounts } from "../operations/recent-commits.ts";
import type { ProcessProbe, ProcessReading } from "./process-probe.ts";

/** What the overview of a server reports on. */
export interface OwnOverviewOptions {
	readonly server: () => ReportingServer;
	readonly controllers: Pick<ControllerReports, "state">;
	readonly storage: {
		readonly kind: string;
		readonly statistics: () => StorageStatistics;
		/** The commits of this server that have succeeded. */
		readonly commits: () => number;
		/** Those of the last minute. */
		readonly recentCommits: () => CommitCounts;
	};
	readonly leases: () => KnownLeases;
	readonly process: Pick<ProcessProbe, "read">;
	readonly clock: Clock;
}

/** Returns the overview of this server alone, as it is now, without rates. It reads counters, and no resource. */
export function ownOverview({
	server,
	controllers,
	storage,
	leases,
	process,
	clock,
}: OwnOverviewOptions): Overview {
	const { name, address, startedAtMs, version } = server();
	const state = controllers.state();
	const statistics = storage.statistics();
	const known = leases();
	const stored = storageInit(storage, statistics, known.held.length);
	return create(OverviewSchema, {
		takenAt: timestampFromMs(clock.now()),
		servers: [
			{
				server: {
					...{ name, address, version },
					startedAt: timestampFromMs(startedAtMs),
					...(state.holdsLease !== undefined && { holdsLease: state.holdsLease }),
				},
				process: processInit(process.read()),
				storage: stored,
			},
		],
		controllers: state.controllers.map((each) => controllerOverview(each, name)),
		storage: stored,
		types: typeInits(statistics),
		...leasesOfServer(known, name),
	});
}

function typeInits({ types }: StorageStatistics): MessageInitShape<typeof TypeOverviewSchema>[] {
	return [...types]
		.sort(([a], [b]) => (a < b ? -1 : 1))
		.map(([type, { resources, withFalse, withStale, beingDeleted, writes }]) => ({
			type,
			resources: BigInt(resources),
			withFalseCondition: BigInt(withFalse),
			withStaleCondition: BigInt(withStale),
			beingDeleted: BigInt(beingDeleted),
			writes: BigInt(writes),
		}));
}

function storageInit(
	{ kind, commits, recentCommits }: OwnOverviewOptions["storage"],
	{ version, oldestVersion, ...statistics }: StorageStatistics,
	leases: number,
): MessageInitShape<typeof StorageOverviewSchema> {
	const { durations, batches, batchedCommits } = recentCommits();
	return {
		...{ kind, version, oldestVersion },
		resources: BigInt(statistics.resources),
		bytes: BigInt(statistics.bytes),
		retainedBytes: BigInt(statistics.retainedBytes),
		logEvents: BigInt(statistics.logEvents),
		commits: BigInt(commits()),
		watches: BigInt(statistics.watches),
		leases,
		commitDurations: durations.map(BigInt),
		batches: BigInt(batches),
		batchedCommits: BigInt(batchedCommits),
	};
}

function processInit({
	uptimeMs,
	cpuMs,
	eventLoopDelayMs,
	...memory
}: ProcessReading): MessageInitShape<typeof ProcessSchema> {
	return {
		uptime: durationOf(uptimeMs),
		cpuTime: durationOf(cpuMs),
		...(eventLoopDelayMs !== undefined && { eventLoopDelay: durationOf(eventLoopDelayMs) }),
		residentBytes: BigInt(memory.residentBytes),
		heapUsedBytes: BigInt(memory.heapUsedBytes),
		heapLimitBytes: BigInt(memory.heapLimitBytes),
	};
}

/** A controller in counts. What is copied has no name of a resource, and no message of an error, which may have one. */
function controllerOverview(state: ControllerState, server: string): ControllerOverview {
	const message = controllerMessage(state, server);
	const { name, manages, placement, phase, inPhase, restarts, shards } = message;
	const { requests, reconciles, undecodable } = message;
	return create(ControllerOverviewSchema, {
		controller: create(ControllerSchema, {
			...{ name, manages, placement, phase, restarts },
			...(inPhase && { inPhase }),
			...(shards && { shards }),
			...(requests && { requests: withoutKey(requests) }),
			...(reconciles && { reconciles: withoutFailures(reconciles) }),
			...(undecodable && { undecodable: { count: undecodable.count } }),
			servers: message.servers.map(onServer),
		}),
		stillRunning: (state.run?.stillRunning.length ?? 0) + state.orphaned.length,
	});
}

function onServer(each: ControllerOnServer): ControllerOnServer {
	const { server, phase, inPhase, restarts, requests, reconciles, shards } = each;
	return create(ControllerOnServerSchema, {
		...{ server, phase, restarts },
		...(inPhase && { inPhase }),
		...(shards && { shards }),
		...(requests && { requests: withoutKey(requests) }),
		...(reconciles && { reconciles: withoutFailures(reconciles) }),
	});
}

function withoutKey(queue: Queue): Queue {
	const { live, background, delayed, active, held, failing, oldestWaiting } = queue;
	return create(QueueSchema, {
		...{ live, background, delayed, active, held, failing },
		...(oldestWaiting && { oldestWaiting }),
	});
}

function withoutFailures(reconciles: Reconciles): Reconciles {
	const { succeeded, failed, overdue, dropped, total, longest } = reconciles;
	return create(ReconcilesSchema, {
		...{ succeeded, failed, overdue, dropped },
		...(total && { total }),
		...(longest && { longest }),
	});
}

/** Rounds to whole milliseconds. */
function durationOf(ms: number): Duration {
	return durationFromMs(Math.round(ms));
}
