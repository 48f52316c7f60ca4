import { Code, ConnectError } from "@connectrpc/connect";
import { trace } from "@opentelemetry/api";
import type { ControllerManager, ManagerState } from "@plinth/controller";
import { metaService, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import { Namespace, Partition, Tombstone } from "@plinth/resource";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { type Logger, systemRuntime } from "@plinth/runtime";
import { formatListenAddress } from "./configuration/listen-address.ts";
import { openInternal } from "./deployment/open-internal.ts";
import { openOthers } from "./deployment/others.ts";
import { References } from "./deployment/references.ts";
import { Health } from "./gen/grpc/health/v1/health_pb.ts";
import { createInterfaces, type Interfaces } from "./interfaces.ts";
import { CallGate } from "./limits/call-gate.ts";
import { defaultCallLimits } from "./limits/call-limits.ts";
import { followTls } from "./listener/followed-tls.ts";
import { defaultListenerLimits } from "./listener/limits.ts";
import { openListener } from "./listener/listener.ts";
import { createPlainEndpoints } from "./listener/plain-endpoints.ts";
import { createRpcHandler } from "./listener/rpc-handler.ts";
import { registerTypes } from "./module/register-types.ts";
import { warnOfUnregistered } from "./module/warn-of-unregistered.ts";
import { auditRefused, auditWrites } from "./operations/audit.ts";
import { measureBatches } from "./operations/batch-metrics.ts";
import { createCallMetrics } from "./operations/call-metrics.ts";
import { observeControllers } from "./operations/controller-metrics.ts";
import { createMetrics } from "./operations/metrics.ts";
import { metricsEndpoint } from "./operations/metrics-endpoint.ts";
import { observeProcess } from "./operations/process-metrics.ts";
import { observeReferences } from "./operations/reference-metrics.ts";
import { measureStorage } from "./operations/storage-metrics.ts";
import { createTracing } from "./operations/tracing.ts";
import { checkReach, openAccess } from "./security/open-access.ts";
import { defaultListen, defaultStopLimitMs, type ServerOptions } from "./server-options.ts";
import { startControllers } from "./start-controllers.ts";
import { openStorage } from "./storage-choice.ts";

/** What the parts need of the server that they are parts of. */
export interface PartsContext {
	readonly options: ServerOptions;
	readonly logger: Logger;
	/** Whether external calls are taken. */
	readonly takesCalls: () => boolean;
	/** A part has failed that the server can't go on without. */
	readonly fail: (failure: unknown) => void;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Ends calls that take too long. */
	readonly callsEnd: AbortController;
	/** Ends a start that waits for other deployments. */
	readonly startEnd: AbortSignal;
}

/** The parts of a server, all of them started. */
export interface RunningParts {
	readonly address: string;
	readonly interfaces: Interfaces;
	/** Things that follow files: each looks now whether they have changed. */
	readonly followers: readonly (() => Promise<void>)[];
	/** What is to be stopped, in the order in which it was started. */
	readonly parts: AsyncDisposableStack;
}

/**
 * Starts the parts of a server, in their order. What has been started is stopped again where one fails.
 *
 * @throws Error of the part that failed.
 */
export async function startParts(context: PartsContext): Promise<RunningParts> {
	const { options, logger, takesCalls, fail, streamsEnd, callsEnd, startEnd } = context;
	const { modules = [], runtime = systemRuntime, deployment } = options;
	const { stopLimitMs = defaultStopLimitMs, listen = defaultListen } = options;
	const limits = { ...defaultListenerLimits, ...options.limits };
	const callLimits = { ...defaultCallLimits, ...options.callLimits };
	const { clock } = runtime;
	const followers: (() => Promise<void>)[] = [];
	await using started = new AsyncDisposableStack();
	// What people get wrong is checked before anything is opened.
	const access = await openAccess(options, { clock, logger });
	started.defer(() => access.close());
	followers.push(() => access.reload());
	const { authorizer } = access;
	checkReach(listen, authorizer, options.allowAnonymous ?? false);
	const tls = options.tls && (await followTls(options.tls, { clock, logger }));
	if (tls !== undefined) {
		started.defer(() => tls.close());
		followers.push(() => tls.check());
	}
	const registry = registerTypes(
		[
			...[Tombstone, Partition, Namespace, ResourceShadow],
			...(deployment?.service === metaService ? metaTypes : []),
		],
		modules,
	);
	const others = deployment && (await openOthers(deployment, { clock, logger }));
	if (others !== undefined) {
		started.defer(() => others.close());
		followers.push(() => others.reload());
	}

	const metrics = createMetrics(options.metricReaders);
	started.defer(() => metrics.close());
	started.defer(observeProcess(metrics.meter));
	const tracing = createTracing(options.tracerProvider ?? trace.getTracerProvider());
	const calls = createCallMetrics(metrics.meter, clock);
	const gate = new CallGate({
		authorizer,
		limits: callLimits,
		clock,
		exempt: new Set([Health.typeName]),
		onRefused: (refused) => {
			calls.refused(refused);
			auditRefused(logger, refused);
		},
	});
	calls.observe(gate);

	const { memoryLimitBytes } = options;
	const storage = await openStorage(options.storage, runtime, logger, {
		...(memoryLimitBytes !== undefined && { limits: { memoryBytes: memoryLimitBytes } }),
		onBatch: measureBatches(metrics.meter),
	});
	started.defer(() => storage.close());
	const { leases } = storage;
	const backend = measureStorage(storage.backend, {
		clock,
		meter: metrics.meter,
		tracer: tracing.tracer,
	});
	const references = await References.open({
		backend,
		identity: storage.identity,
		types: registry.all(),
		foreignTypes: modules.flatMap((module) => module.foreignTypes),
		deployment,
		connections: others?.connections,
		ownService: () => interfaces.trustedCloned,
		runtime,
		logger,
		onFailure: fail,
	});
	started.defer(() => references.close());
	observeReferences(metrics.meter, () => references.metrics());
	await ensureDefaultTenancy(references.store, runtime);
	await warnOfUnregistered(backend, registry, logger);

	let manager: ControllerManager | undefined;
	const running = () => {
		if (manager === undefined) {
			throw new Error("controllers are reported on when they have been started");
		}
		return manager;
	};
	const interfaces = createInterfaces({
		backend: references.store,
		copies: storage.copies,
		registry,
		authorizer,
		modules,
		// The manager works through the interfaces: it comes after them.
		controllers: {
			state: () => withControllers(running().state(), references.state()),
			graph: () => running().graph(),
		},
		runtime,
		logger,
		limits,
		takesCalls,
		enter: gate.enter,
		interceptors: [tracing.interceptor, calls.interceptor, auditWrites(logger)],
		streamsEnd,
		callsEnd: callsEnd.signal,
	});
	if (deployment !== undefined && others !== undefined) {
		const internal = await openInternal({
			...{ deployment, others, limits, tls, runtime, logger, streamsEnd },
			mixin: references.mixin,
			store: references.store,
			callsEnd: callsEnd.signal,
		});
		started.defer(() => internal.close(cutAfterMs));
	}
	await references.discover(startEnd);

	const controllers = startControllers({
		...{ interfaces, registry, modules, leases, runtime, logger },
		onFailure: fail,
	});
	({ manager } = controllers);
	observeControllers(metrics.meter, manager);
	references.control({
		client: interfaces.trustedShared,
		cloningClient: interfaces.trustedCloned,
		leases,
	});
	started.defer(() => controllers.stop());

	const listener = await openListener({
		address: listen,
		limits,
		...(tls && { tls: tls.material }),
		clock,
		logger,
		handler: createRpcHandler(
			interfaces.external,
			createPlainEndpoints(interfaces.external, takesCalls, metricsEndpoint(metrics, authorizer)),
			logger,
		),
	});
	tls?.follow(listener);
	metrics.meter
		.createObservableGauge("plinth.connections", { description: "Open connections" })
		.addCallback((result) => result.observe(listener.connections));
	started.defer(async () => {
		const tooLong = new ConnectError(
			"the server stops, and the call took too long",
			Code.Unavailable,
		);
		const abortCalls = clock.setTimer(stopLimitMs, () => callsEnd.abort(tooLong));
		await listener.close(stopLimitMs + cutAfterMs);
		abortCalls.cancel();
	});

	return {
		address: `${tls === undefined ? "http" : "https"}://${formatListenAddress(listener.address)}`,
		interfaces,
		followers,
		parts: started.move(),
	};
}

/** The report on all controllers. */
function withControllers(own: ManagerState, more: ManagerState | undefined): ManagerState {
	return more === undefined
		? own
		: { ...own, controllers: [...own.controllers, ...more.controllers] };
}

/** What calls that were told to end get to say so, before their connections are cut. */
const cutAfterMs = 1_000;
