import { randomBytes } from "node:crypto";
import type { ControllerManager, ControllerReports } from "@plinth/controller";
import { systemRuntime, unlessAborted } from "@plinth/runtime";
import { defaultAdvertisedAddress } from "../cluster/advertised-address.ts";
import { ClusterMember } from "../cluster/cluster-member.ts";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { openInternal } from "../deployment/open-internal.ts";
import { takerOf } from "../limits/call-gate.ts";
import { defaultCallLimits } from "../limits/call-limits.ts";
import { admitWatches } from "../limits/watch-admission.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { auditWrites } from "../operations/audit.ts";
import { observeControllers } from "../operations/controller-metrics.ts";
import { Readiness } from "../operations/readiness.ts";
import { ownOverview } from "../overview/own-overview.ts";
import { ProcessProbe } from "../overview/process-probe.ts";
import { SharedOverviews } from "../overview/shared-overviews.ts";
import { defaultStopLimitMs } from "../server-options.ts";
import { type Interfaces, registerServices } from "../services/register-services.ts";
import { allReports } from "./all-reports.ts";
import { closeAfterMs, openPublicListener } from "./open-public-listener.ts";
import { createRequestLimits, type RequestLimits } from "./request-limits.ts";
import type { StartContext, StartOptions } from "./start-context.ts";
import { startControllers } from "./start-controllers.ts";
import { type Copies, createCopies, runCopies } from "./start-copies.ts";
import { type StartedStorage, startStorage } from "./start-storage.ts";
import { startTelemetry, type Telemetry } from "./start-telemetry.ts";
import { type ValidatedOptions, validateOptions } from "./validate-options.ts";

/** The parts of a server, all of them started. */
export interface RunningParts {
	readonly address: string;
	readonly interfaces: Interfaces;
	/** Each checks now whether files have changed. */
	readonly reloads: readonly (() => Promise<void>)[];
	/** Stops all parts, the last one first. */
	readonly parts: AsyncDisposableStack;
}

/** The results of the steps before the services. */
interface Prepared extends ValidatedOptions, Telemetry, RequestLimits, StartedStorage, Copies {
	readonly readiness: Readiness;
	readonly cluster: ClusterMember;
}

/**
 * Starts the parts of a server, one after the other. If one fails, those that have been started are stopped.
 *
 * @throws Error of the part that failed.
 */
export async function startParts(start: StartOptions): Promise<RunningParts> {
	const { options, logger, startEnd } = start;
	await using started = new AsyncDisposableStack();
	const context: StartContext = {
		...start,
		started,
		modules: options.modules ?? [],
		runtime: options.runtime ?? systemRuntime,
		limits: { ...defaultListenerLimits, ...options.limits },
		callLimits: { ...defaultCallLimits, ...options.callLimits },
		stopLimitMs: options.stopLimitMs ?? defaultStopLimitMs,
	};
	const validated = await validateOptions(context);
	const telemetry = startTelemetry(context);
	const secret = randomBytes(32).toString("base64url");
	const requestLimits = createRequestLimits(context, validated, telemetry, secret);
	const readiness = new Readiness(logger);
	await unlessAborted(Promise.resolve(options.beforeStorage?.()), startEnd);
	const storage = await startStorage(context, {
		...validated,
		...telemetry,
		readiness,
		ownService: () => interfaces.trustedCloned,
	});
	const cluster = new ClusterMember({
		...{ directory: storage.servers, clock: context.runtime.clock, logger, secret },
		tls: () => validated.tls?.material,
		callerOf: ({ values }) => takerOf(values).caller,
	});
	started.defer(() => cluster.close());
	const copying = createCopies(context, {
		...{ ...validated, ...storage, ...requestLimits, ...telemetry },
		interfaces: () => interfaces,
	});
	const parts = { ...validated, ...telemetry, ...requestLimits, ...storage };
	const prepared = { ...parts, ...copying, readiness, cluster };
	let manager: ControllerManager | undefined;
	const interfaces = createInterfaces(context, prepared, () => manager);
	await openInternalListener(context, prepared);
	// It reports the health of a server that waits for other deployments, perhaps for long.
	await using listening = new AsyncDisposableStack();
	const listener = await openPublicListener(
		{ ...context, started: listening },
		{ ...prepared, interfaces },
	);
	await storage.references.discover(startEnd);
	manager = runControllers(context, prepared, interfaces);
	// Parts stop in reverse order: calls end before what they use.
	started.use(listening.move());
	const scheme = validated.tls === undefined ? "http" : "https";
	cluster.join(options.advertisedAddress ?? defaultAdvertisedAddress(scheme, listener.address));
	started.defer(() => cluster.leave());
	runCopies(copying, started);
	return {
		address: `${scheme}://${formatListenAddress(listener.address)}`,
		interfaces,
		reloads: validated.reloads,
		parts: started.move(),
	};
}

/** @param manager returns the controllers once they run: they use the interfaces, and start after them. */
function createInterfaces(
	context: StartContext,
	prepared: Prepared,
	manager: () => ControllerManager | undefined,
): Interfaces {
	const { modules, runtime, logger, limits, acceptsCalls, streamsEnd, callsEnd } = context;
	const { authorizer, registry, copies, references, histories, events, readiness } = prepared;
	const { gate, meter, tracing, calls, cluster, leases, timedLeases, peerings } = prepared;
	const running = () => {
		const started = manager();
		if (started === undefined) {
			throw new Error("the controllers have not been started");
		}
		return started;
	};
	const controllers = allReports(() => {
		const ofReferences = references.controllers();
		return ofReferences === undefined ? [running()] : [running(), ofReferences];
	});
	return registerServices({
		backend: references.store,
		...{ copies, histories, references, events, registry, authorizer },
		allowedHosts: prepared.origins.allowedHosts,
		region: context.options.deployment?.region,
		...{ modules, runtime, logger, limits },
		...{ acceptsCalls, streamsEnd, cluster, controllers, leases, timedLeases, peerings },
		overviews: overviewsOf(context, prepared, controllers),
		isReady: () => acceptsCalls() && readiness.isReady,
		enter: meter.after(gate.enter),
		watchAdmission: admitWatches(gate, calls, context.callLimits),
		observers: [tracing.observer, calls.observer, auditWrites(logger)],
		callsEnd: callsEnd.signal,
	});
}

/** The overviews of this server, which cost nothing until they are requested. */
function overviewsOf(
	{ options, runtime: { clock }, streamsEnd, started }: StartContext,
	{ cluster, statistics, commits, recentCommits, heldLeases, timedLeases }: Prepared,
	controllers: ControllerReports,
): SharedOverviews {
	const process = started.use(new ProcessProbe(clock));
	const storage = {
		...{ kind: options.storage.kind, statistics, commits },
		recentCommits: () => recentCommits.counts(),
	};
	const leases = () => ({ held: heldLeases.current(), granted: timedLeases.current() });
	const server = () => cluster.own;
	return new SharedOverviews({
		own: () => ownOverview({ server, controllers, storage, leases, process, clock }),
		...{ cluster, clock, end: streamsEnd },
	});
}

/** Opens the port for other deployments, if this server is one of several. */
async function openInternalListener(context: StartContext, prepared: Prepared): Promise<void> {
	const { options, runtime, logger, limits, streamsEnd, callsEnd, started } = context;
	const { peers, tls, references, internalMeter, calls, regional } = prepared;
	const { deployment } = options;
	if (deployment === undefined || peers === undefined) {
		return;
	}
	const internal = await openInternal({
		...{ deployment, peers, limits, tls, runtime, logger, streamsEnd },
		meter: internalMeter,
		mixin: references.service,
		copies: regional?.service,
		store: references.store,
		callsEnd: callsEnd.signal,
		onCut: calls.cut,
		http2: options.http2,
	});
	started.defer(() => internal.close(closeAfterMs));
}

/** Starts the controllers of the server, of its modules and of references. */
function runControllers(
	context: StartContext,
	{ registry, references, leases, events, metrics }: Prepared,
	interfaces: Interfaces,
): ControllerManager {
	const { options, modules, runtime, logger, fail, started } = context;
	const controllers = startControllers({
		...{ interfaces, registry, modules, leases, events, runtime, logger },
		backend: references.store,
		isShared: options.storage.kind === "etcd",
		region: options.deployment?.region,
		onFailure: fail,
	});
	observeControllers(metrics.meter, controllers.manager);
	references.control({
		client: interfaces.trustedShared,
		cloningClient: interfaces.trustedCloned,
		leases,
		events,
	});
	started.defer(() => controllers.stop());
	return controllers.manager;
}
