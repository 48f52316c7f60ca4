import type { Client } from "@connectrpc/connect";
import { openReferences, type References, ServiceDescriptor } from "@plinth/db-constraint";
import { EventLog } from "@plinth/events";
import type { ResourceService } from "@plinth/proto";
import { createCallerAuthenticator, ensureDefaultTenancy } from "@plinth/resource-service";
import { SuspendableLeases, type Timer } from "@plinth/runtime";
import {
	type HistorySource,
	type StorageBackend,
	type StorageIdentity,
	WatchDeliveries,
} from "@plinth/storage";
import { directAddress } from "../deployment/direct-address.ts";
import { GrantedLeases } from "../leases/granted-leases.ts";
import { HeldLeases } from "../leases/held-leases.ts";
import { warnOfUnregistered } from "../module/warn-of-unregistered.ts";
import { measureBatches } from "../operations/batch-metrics.ts";
import { observeDeliveries } from "../operations/delivery-metrics.ts";
import { observeEvents } from "../operations/event-metrics.ts";
import type { Readiness } from "../operations/readiness.ts";
import { RecentCommits } from "../operations/recent-commits.ts";
import { observeReferences } from "../operations/reference-metrics.ts";
import { measureStorage } from "../operations/storage-metrics.ts";
import { serverName } from "../server-name.ts";
import { type OpenStorage, openStorage } from "../storage/open-storage.ts";
import type { StartContext } from "./start-context.ts";
import type { Telemetry } from "./start-telemetry.ts";
import type { ValidatedOptions } from "./validate-options.ts";

/** The storage of a server, ready for its services. */
export interface StartedStorage extends Pick<OpenStorage, "copies" | "servers" | "statistics"> {
	/** Its `store` is the storage that services and controllers use. */
	readonly references: References;
	/** The storage beside references: for copies of other clusters' resources. */
	readonly unconstrained: StorageBackend;
	readonly identity: StorageIdentity | undefined;
	/** The recent versions of the resources. */
	readonly histories: HistorySource;
	readonly leases: SuspendableLeases;
	/** The leases that this server holds. */
	readonly heldLeases: Pick<HeldLeases, "current">;
	/** Leases for processes that are not servers, and those that this server has granted. */
	readonly timedLeases: GrantedLeases;
	readonly events: EventLog;
	/** The commits of this server that have succeeded. */
	readonly commits: () => number;
	readonly recentCommits: Pick<RecentCommits, "counts">;
}

/** Options of `startStorage`. */
export interface StartStorageOptions
	extends Pick<ValidatedOptions, "authorizer" | "registry" | "peers">,
		Pick<Telemetry, "metrics" | "tracing"> {
	readonly readiness: Readiness;
	/** The server's own resource service. It is called only when the services are registered. */
	readonly ownService: () => Client<typeof ResourceService>;
}

/** Opens the storage, measures it, puts the references around it, and writes the default tenancy. */
export async function startStorage(
	context: StartContext,
	{ authorizer, registry, peers, metrics, tracing, readiness, ownService }: StartStorageOptions,
): Promise<StartedStorage> {
	const { options, logger, modules, runtime, started, startEnd, fail } = context;
	const recent = new RecentCommits(runtime.clock);
	const storage = await openMeasured(context, { metrics, readiness, recent });
	started.defer(() => storage.close());
	startEnd.throwIfAborted();
	const events = new EventLog({
		storage: storage.events,
		server: serverName,
		isShared: options.storage.kind === "etcd",
		...{ runtime, logger },
	});
	started.defer(() => events.close());
	observeEvents(metrics.meter, events);
	events.start();
	const heldLeases = new HeldLeases(storage.leases, runtime.clock);
	const leases = new SuspendableLeases(heldLeases);
	const { backend, commits } = measureStorage(storage.backend, {
		clock: runtime.clock,
		metrics,
		tracer: tracing.tracer,
		recent,
		eachAlone: options.storage.kind === "memory",
	});
	const { deployment } = options;
	const direct = directAddress(options, logger);
	const references = await openReferences({
		backend,
		identity: storage.identity,
		descriptor: new ServiceDescriptor({
			types: registry.all(),
			foreignTypes: modules.flatMap((module) => module.foreignTypes),
			service: deployment?.service ?? "",
		}),
		...(deployment &&
			peers && {
				deployment: {
					...deployment,
					...(direct !== undefined && { directAddress: direct }),
					connect: peers.connections.open,
					ownService,
				},
				dropsVersionsInUse: deployment.dropsVersionsInUse ?? false,
			}),
		callers: createCallerAuthenticator(registry, authorizer),
		...{ leases, runtime, logger },
		onSuperseded: (reason) =>
			reason === undefined ? readiness.clear("references") : readiness.block("references", reason),
		onFailure: fail,
	});
	started.defer(() => references.close());
	observeReferences(metrics.meter, runtime.clock, references);
	startEnd.throwIfAborted();
	await ensureDefaultTenancy(references.store, runtime);
	await warnOfUnregistered(backend, registry, logger);
	startEnd.throwIfAborted();
	const { copies, servers, statistics, identity, backend: histories } = storage;
	const timedLeases = new GrantedLeases(storage.timedLeases, runtime.clock);
	const counted = { statistics, commits, recentCommits: recent };
	const opened = { copies, servers, ...counted, histories, heldLeases, timedLeases };
	return { ...opened, references, leases, events, unconstrained: backend, identity };
}

/** Opens the storage. Once it has failed, the server is not ready, and stops unless it is to stay up. */
function openMeasured(
	context: StartContext,
	{
		metrics,
		readiness,
		recent,
	}: Pick<StartStorageOptions, "metrics" | "readiness"> & { readonly recent: RecentCommits },
): Promise<OpenStorage> {
	const { options, logger, runtime, started, startEnd, stopLimitMs, fail } = context;
	const { memoryLimitBytes, onStorageFailure = "exit" } = options;
	let failedStop: Timer | undefined;
	const deliveries = new WatchDeliveries(runtime);
	observeDeliveries(metrics.meter, () => deliveries.takeLag());
	started.defer(() => failedStop?.cancel());
	return openStorage(options.storage, runtime, logger, {
		...(memoryLimitBytes !== undefined && { limits: { memoryBytes: memoryLimitBytes } }),
		deliveries,
		onBatch: measureBatches(metrics.meter, recent),
		onFailed: (failure) => {
			logger.error({ err: failure }, "the storage failed: no write is accepted from now on");
			readiness.block("storage", failure.message);
			if (onStorageFailure === "exit") {
				// Reads continue, and load balancers have time to notice.
				failedStop = runtime.clock.setTimer(stopLimitMs, () => fail(failure));
			}
		},
		signal: startEnd,
	});
}
