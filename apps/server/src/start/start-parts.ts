import { Code, ConnectError } from "@connectrpc/connect";
import { trace } from "@opentelemetry/api";
import type { ControllerManager, ManagerState } from "@plinth/controller";
import { metaService, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import { Namespace, Partition, Tombstone } from "@plinth/resource";
import { createCallerAuthenticator, ensureDefaultTenancy } from "@plinth/resource-service";
import { type Logger, SuspendableLeases, systemRuntime, type Timer } from "@plinth/runtime";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { BytePacer } from "../decoding/byte-pacer.ts";
import { FieldLimits } from "../decoding/field-limits.ts";
import { IncompleteMessages } from "../decoding/incomplete-messages.ts";
import { RequestMeter, type RequestMeterOptions } from "../decoding/request-meter.ts";
import { openInternal } from "../deployment/open-internal.ts";
import { openPeerConnections } from "../deployment/peer-connections.ts";
import { References } from "../deployment/references.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { CallGate } from "../limits/call-gate.ts";
import { defaultCallLimits } from "../limits/call-limits.ts";
import { EventLoopTurns } from "../limits/event-loop-turns.ts";
import { Exchanges } from "../listener/exchanges.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { openListener } from "../listener/listener.ts";
import { checkOrigin } from "../listener/origin/origin-check.ts";
import { createPlainEndpoints } from "../listener/plain-endpoints.ts";
import { createRpcHandler } from "../listener/rpc-handler.ts";
import { takeTurns } from "../listener/take-turns.ts";
import { followTls } from "../listener/tls/followed-tls.ts";
import { registerTypes } from "../module/register-types.ts";
import { warnOfUnregistered } from "../module/warn-of-unregistered.ts";
import { auditRefusals, auditWrites } from "../operations/audit.ts";
import { measureBatches } from "../operations/batch-metrics.ts";
import { createCallMetrics } from "../operations/call-metrics.ts";
import { observeControllers } from "../operations/controller-metrics.ts";
import { createMetrics } from "../operations/metrics.ts";
import { metricsEndpoint } from "../operations/metrics-endpoint.ts";
import { observeProcess } from "../operations/process-metrics.ts";
import { Readiness } from "../operations/readiness.ts";
import { observeReferences } from "../operations/reference-metrics.ts";
import { measureStorage } from "../operations/storage-metrics.ts";
import { createTracing } from "../operations/tracing.ts";
import { checkReach, openAccess } from "../security/open-access.ts";
import { originPolicy } from "../security/origin-policy.ts";
import { defaultListen, defaultStopLimitMs, type ServerOptions } from "../server-options.ts";
import { healthStatus } from "../services/health-service.ts";
import { HealthWatches } from "../services/health-watches.ts";
import {
	createInterfaces,
	healthMessageBytes,
	type Interfaces,
} from "../services/register-services.ts";
import { openStorage } from "../storage/open-storage.ts";
import { startControllers } from "./start-controllers.ts";

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
	/** Ends a start that loads the storage or waits for other deployments. */
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
	const origins = originPolicy(options, listen, authorizer);
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
		deployment?.service,
	);
	const peers = deployment && (await openPeerConnections(deployment, { clock, logger }));
	if (peers !== undefined) {
		started.defer(() => peers.close());
		followers.push(() => peers.reload());
	}

	const metrics = createMetrics(options.metricReaders);
	started.defer(() => metrics.close());
	started.defer(observeProcess(metrics.meter));
	const tracing = createTracing(options.tracerProvider ?? trace.getTracerProvider());
	const calls = createCallMetrics(metrics.meter, clock);
	const auditRefused = auditRefusals({ logger, clock, onSuppressed: calls.auditSuppressed });
	const gate = new CallGate({
		authorizer,
		limits: callLimits,
		streamsPerConnection: limits.streamsPerConnection,
		clock,
		exempt: new Set([Health.typeName]),
		onRefused: (refused) => {
			calls.refused(refused);
			auditRefused(refused);
		},
	});
	calls.observe(gate);
	const fieldLimits = {
		registry: registry.messages(),
		messageFields: limits.messageFields,
		methods: new Map(modules.flatMap(({ messageFields }) => [...messageFields])),
	};
	const turns = new EventLoopTurns(clock);
	const incomplete = new IncompleteMessages(limits.incompleteBytes, limits.messageBytes, clock);
	calls.observeIncomplete(incomplete);
	const metering = {
		messageBytes: ({ parent }) => (parent === Health ? healthMessageBytes : limits.messageBytes),
		turns,
		incomplete,
		onRefused: ({ method, subject, error }) => {
			const refused = { call: { method }, why: "fields", subject, error } as const;
			calls.refused(refused);
			auditRefused(refused);
		},
	} satisfies Omit<RequestMeterOptions, "fields">;
	const { bytesPerSecond, byteBurst } = callLimits;
	const pacer = new BytePacer({ perSecond: bytesPerSecond, burst: byteBurst }, clock);
	const meter = new RequestMeter({ ...metering, fields: new FieldLimits(fieldLimits), pacer });

	const exchanges = new Exchanges({ clock, logger, limits, onCut: calls.cut });
	calls.observeExchanges(exchanges);

	const readiness = new Readiness(logger);
	let failedStop: Timer | undefined;
	started.defer(() => failedStop?.cancel());
	const { memoryLimitBytes, onStorageFailure = "exit" } = options;
	const storage = await openStorage(options.storage, runtime, logger, {
		...(memoryLimitBytes !== undefined && { limits: { memoryBytes: memoryLimitBytes } }),
		onBatch: measureBatches(metrics.meter),
		onFailed: (failure) => {
			logger.error({ err: failure }, "the storage failed: no write is accepted from now on");
			readiness.block("storage", failure.message);
			if (onStorageFailure === "exit") {
				// Until then balancers notice, and calls that only read go on.
				failedStop = clock.setTimer(stopLimitMs, () => fail(failure));
			}
		},
		signal: startEnd,
	});
	started.defer(() => storage.close());
	startEnd.throwIfAborted();
	const leases = new SuspendableLeases(storage.leases);
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
		connections: peers?.connections,
		callers: createCallerAuthenticator(registry, authorizer),
		ownService: () => interfaces.trustedCloned,
		...{ leases, readiness, runtime, logger },
		onFailure: fail,
	});
	started.defer(() => references.close());
	observeReferences(metrics.meter, () => references.metrics());
	startEnd.throwIfAborted();
	await ensureDefaultTenancy(references.store, runtime);
	await warnOfUnregistered(backend, registry, logger);
	startEnd.throwIfAborted();

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
		isReady: () => takesCalls() && readiness.isReady,
		enter: meter.after(gate.enter),
		interceptors: [tracing.interceptor, calls.interceptor, auditWrites(logger)],
		streamsEnd,
		callsEnd: callsEnd.signal,
	});
	if (deployment !== undefined && peers !== undefined) {
		const internal = await openInternal({
			...{ deployment, peers, limits, tls, runtime, logger, streamsEnd },
			meter: new RequestMeter({
				...metering,
				// What was accepted here must not be refused there for what is said of it.
				fields: new FieldLimits({ ...fieldLimits, messageFields: 4 * limits.messageFields }),
				unaryOnly: true,
			}),
			mixin: references.mixin,
			store: references.store,
			callsEnd: callsEnd.signal,
			onCut: calls.cut,
		});
		started.defer(() => internal.close(cutAfterMs));
	}
	await references.discover(startEnd);

	const controllers = startControllers({
		...{ interfaces, registry, modules, leases, runtime, logger },
		backend: references.store,
		isShared: options.storage.kind === "etcd",
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

	const healthWatches = new HealthWatches({
		...{ limits, clock, logger, streamsEnd, messageBytes: healthMessageBytes },
		statusOf: healthStatus({
			services: () => interfaces.external.handlers.map(({ service }) => service.typeName),
			isReady: () => takesCalls() && readiness.isReady,
		}),
	});
	calls.observeHealth(healthWatches);
	const listener = await openListener({
		address: listen,
		limits,
		...(tls && { tls: tls.material }),
		clock,
		logger,
		handler: takeTurns(
			{
				turns,
				connectionOf: (...exchange) => exchanges.connectionOf(...exchange),
				waitingPerCaller: Math.max(callLimits.callsInFlight, limits.streamsPerConnection),
				clock,
				onRefused: () => calls.requestRefused("waiting"),
				onAnswered: exchanges.beginPlain,
			},
			checkOrigin(
				{ ...origins, onRefused: calls.requestRefused, onAnswered: exchanges.beginPlain },
				createRpcHandler({
					router: interfaces.external,
					fallback: createPlainEndpoints(
						interfaces.external,
						() => problemsOf(takesCalls(), readiness),
						metricsEndpoint(metrics, authorizer),
					),
					exchanges,
					special: new Map([[healthWatches.path, healthWatches.serve]]),
					logger,
					meter,
				}),
			),
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

/** Why a server is not ready, for `/readyz`: a line each. */
function problemsOf(takesCalls: boolean, readiness: Readiness): readonly string[] {
	const blocked = [...readiness.reasons].map(([part, reason]) => `${part}: ${reason}`);
	return takesCalls ? blocked : ["the server is starting or stopping", ...blocked];
}

/** The report on all controllers. */
function withControllers(own: ManagerState, more: ManagerState | undefined): ManagerState {
	return more === undefined
		? own
		: { ...own, controllers: [...own.controllers, ...more.controllers] };
}

/** What calls that were told to end get to say so, before their connections are cut. */
const cutAfterMs = 1_000;
