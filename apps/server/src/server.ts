import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { type TracerProvider, trace } from "@opentelemetry/api";
import type { IMetricReader } from "@opentelemetry/sdk-metrics";
import { createControllerManager, type ManagerState } from "@plinth/controller";
import { metaService, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import type { ResourceService } from "@plinth/proto";
import {
	type Authorizer,
	Namespace,
	operatorRead,
	Partition,
	Tombstone,
	type TypeLike,
	type TypeRegistry,
} from "@plinth/resource";
import { accessOf, ensureDefaultTenancy, everyoneMayDoEverything } from "@plinth/resource-service";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { createReaper, createTenancyDeletion } from "@plinth/system-controllers";
import {
	formatListenAddress,
	isLoopback,
	type ListenAddress,
} from "./configuration/listen-address.ts";
import type { DeploymentOptions } from "./deployment/deployment-options.ts";
import { createInternalRouter } from "./deployment/internal-router.ts";
import { openOthers } from "./deployment/others.ts";
import { References } from "./deployment/references.ts";
import { Health } from "./gen/grpc/health/v1/health_pb.ts";
import { createInterfaces, type Interfaces } from "./interfaces.ts";
import { CallGate } from "./limits/call-gate.ts";
import { type CallLimits, defaultCallLimits } from "./limits/call-limits.ts";
import { endStreams } from "./listener/end-streams.ts";
import { defaultListenerLimits, type ListenerLimits } from "./listener/limits.ts";
import { ListenError, type Listener, openListener } from "./listener/listener.ts";
import { createPlainEndpoints, type MetricsEndpoint } from "./listener/plain-endpoints.ts";
import { reportFaults } from "./listener/report-faults.ts";
import { answerText } from "./listener/request-handler.ts";
import { createRpcHandler } from "./listener/rpc-handler.ts";
import { checkTlsMaterial, type TlsFiles, type TlsMaterial } from "./listener/tls-files.ts";
import type { Module } from "./module/define-module.ts";
import { registerTypes } from "./module/register-types.ts";
import { auditRefused, auditWrites } from "./operations/audit.ts";
import { createCallMetrics } from "./operations/call-metrics.ts";
import { observeControllers } from "./operations/controller-metrics.ts";
import { createMetrics, type Metrics, prometheusType } from "./operations/metrics.ts";
import { observeProcess } from "./operations/process-metrics.ts";
import { measureStorage } from "./operations/storage-metrics.ts";
import { createTracing } from "./operations/tracing.ts";
import { createAccessAuthorizer } from "./security/access-authorizer.ts";
import type { AccessOptions } from "./security/access-options.ts";
import { followFiles } from "./security/followed-files.ts";
import { openStorage, type StorageChoice } from "./storage-choice.ts";

/** Options of a server. */
export interface ServerOptions {
	readonly storage: StorageChoice;
	/** 127.0.0.1:7575 where it is absent; port 0 takes a free one. */
	readonly listen?: ListenAddress;
	readonly modules?: readonly Module[];
	/** What all resources together may take, in bytes; no limit where it is absent. */
	readonly memoryLimitBytes?: number;
	/** Files that make the listener speak TLS. They are followed. */
	readonly tls?: TlsFiles;
	/**
	 * Who may do what of those who call through the listener. Without it, and without `authorizer`,
	 * everyone who reaches the port has full rights.
	 */
	readonly access?: AccessOptions;
	/** Decides in place of `access`. */
	readonly authorizer?: Authorizer;
	/** Listen beyond this machine although everyone has full rights. */
	readonly allowAnonymous?: boolean;
	/** Which deployment this is; references reach no further than this server where it is absent. */
	readonly deployment?: DeploymentOptions;
	readonly runtime?: Runtime;
	readonly logger?: Logger;
	/** Limits that differ from `defaultListenerLimits`. */
	readonly limits?: Partial<ListenerLimits>;
	/** Limits that differ from `defaultCallLimits`. */
	readonly callLimits?: Partial<CallLimits>;
	/** Who makes the spans of traces; none are made where it is absent. */
	readonly tracerProvider?: TracerProvider;
	/** Who else reads the metrics, besides `/metrics`. */
	readonly metricReaders?: readonly IMetricReader[];
	/** How long running calls may take to finish when the server stops; 10 s where it is absent. */
	readonly stopLimitMs?: number;
}

/** A server within this process. It starts once. */
export interface Server {
	/**
	 * Starts in order: storage, types, resource service, internal listener, discovery, controllers,
	 * listener. What has been started is stopped again where a step fails.
	 *
	 * @throws Error of the step that failed.
	 */
	start(): Promise<void>;
	/**
	 * Stops in order: refuses new calls, ends streams with Unavailable, lets running calls finish,
	 * stops the controllers, closes the storage. Stopping twice waits for the same end.
	 */
	stop(): Promise<void>;
	/** Looks now whether the files of TLS and access have changed, which it does every 2 s besides. */
	reload(): Promise<void>;
	/** Where the listener is reached, as `http://127.0.0.1:7575`. Once started. */
	readonly address: string;
	/** The resource service with full rights, in process; messages are cloned. Once started. */
	readonly client: Client<typeof ResourceService>;
	/** Resolves when the server has stopped; rejects where it had to because a part of it failed. */
	readonly ended: Promise<void>;
}

const defaultListen: ListenAddress = { host: "127.0.0.1", port: 7575 };
const defaultStopLimitMs = 10_000;

/** A server of the given parts, not started yet. */
export function createServer(options: ServerOptions): Server {
	return new ComposedServer(options);
}

type Phase = "new" | "starting" | "running" | "stopping" | "stopped";

interface Running {
	readonly address: string;
	readonly interfaces: Interfaces;
	/** Things that follow files. */
	readonly followers: readonly (() => Promise<void>)[];
	/** What is to be stopped, in the order in which it was started. */
	readonly parts: AsyncDisposableStack;
}

class ComposedServer implements Server {
	readonly #options: ServerOptions;
	readonly #logger: Logger;
	readonly #streamsEnd = new AbortController();
	readonly #callsEnd = new AbortController();
	/** Ends a start that waits for other deployments. */
	readonly #startEnd = new AbortController();
	readonly #ended = Promise.withResolvers<void>();
	#phase: Phase = "new";
	#starting: Promise<Running> | undefined;
	#stopping: Promise<void> | undefined;
	#running: Running | undefined;

	constructor(options: ServerOptions) {
		this.#options = options;
		this.#logger = options.logger ?? silentLogger;
		// Whoever does not wait for the end is not to be stopped by it.
		this.#ended.promise.catch(() => {});
	}

	get ended(): Promise<void> {
		return this.#ended.promise;
	}

	get address(): string {
		return this.#started().address;
	}

	get client(): Client<typeof ResourceService> {
		return this.#started().interfaces.trustedCloned;
	}

	async start(): Promise<void> {
		if (this.#phase !== "new") {
			throw new Error(`the server is ${this.#phase}: it starts once, create another one`);
		}
		this.#phase = "starting";
		try {
			this.#starting = this.#startParts();
			this.#running = await this.#starting;
		} catch (failure) {
			this.#phase = "stopped";
			this.#ended.resolve();
			throw failure;
		}
		if (this.#phase === "starting") {
			this.#phase = "running";
			this.#logger.info({ address: this.#running.address }, "server ready");
		}
	}

	async reload(): Promise<void> {
		await Promise.all(this.#started().followers.map((check) => check()));
	}

	stop(): Promise<void> {
		this.#startEnd.abort(new Error("the server was stopped while it started"));
		this.#stopping ??= this.#stop(undefined);
		return this.#stopping;
	}

	/** A part of the server has failed that it can't go on without. */
	#fail(failure: unknown): void {
		if (this.#stopping === undefined) {
			this.#logger.error({ err: failure }, "a part of the server failed: it stops");
			this.#startEnd.abort(failure);
			this.#stopping = this.#stop(failure);
			// How it ends is told by `ended`.
			this.#stopping.catch(() => {});
		}
	}

	#started(): Running {
		if (this.#running === undefined) {
			throw new Error("the server is not started: await start() first");
		}
		return this.#running;
	}

	async #startParts(): Promise<Running> {
		const {
			modules = [],
			runtime = systemRuntime,
			stopLimitMs = defaultStopLimitMs,
		} = this.#options;
		const logger = this.#logger;
		const limits = { ...defaultListenerLimits, ...this.#options.limits };
		const callLimits = { ...defaultCallLimits, ...this.#options.callLimits };
		const { clock } = runtime;
		const followers: (() => Promise<void>)[] = [];
		await using started = new AsyncDisposableStack();
		// What people get wrong is checked before anything is opened.
		const authorizer = await this.#openAccess(started, followers);
		const listen = this.#options.listen ?? defaultListen;
		this.#checkReach(listen, authorizer);
		const tls = await this.#readTls(started, followers);
		const { deployment } = this.#options;
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

		const metrics = createMetrics(this.#options.metricReaders);
		started.defer(() => metrics.close());
		started.defer(observeProcess(metrics.meter));
		const tracing = createTracing(this.#options.tracerProvider ?? trace.getTracerProvider());
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

		const { memoryLimitBytes } = this.#options;
		const storage = await openStorage(this.#options.storage, runtime, logger, {
			...(memoryLimitBytes !== undefined && { memoryBytes: memoryLimitBytes }),
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
			onFailure: (failure) => this.#fail(failure),
		});
		started.defer(() => references.close());
		await ensureDefaultTenancy(references.store, runtime);
		await warnOfUnregistered(backend, registry, logger);

		const interfaces = createInterfaces({
			backend: references.store,
			registry,
			authorizer,
			modules,
			// The manager works through the interfaces: it comes after them.
			controllers: {
				state: () => withControllers(manager.state(), references.state()),
				graph: () => manager.graph(),
			},
			runtime,
			logger,
			limits,
			takesCalls: () => this.#phase === "running",
			enter: gate.enter,
			interceptors: [tracing.interceptor, calls.interceptor, auditWrites(logger)],
			streamsEnd: this.#streamsEnd.signal,
			callsEnd: this.#callsEnd.signal,
		});
		if (deployment !== undefined && others !== undefined) {
			const internal = await openListener({
				address: deployment.internalListen,
				limits,
				...(tls && { tls: tls.withoutClients }),
				clock,
				logger,
				handler: createRpcHandler(
					createInternalRouter({
						mixin: references.mixin,
						isMeta: deployment.service === metaService,
						store: references.store,
						runtime,
						logger,
						messageBytes: limits.messageBytes,
						check: (call) => others.credential.check(call),
						interceptors: [endStreams(this.#streamsEnd.signal), reportFaults(logger)],
						callsEnd: this.#callsEnd.signal,
					}),
					(_request, response) => answerText(response, 404, "only deployments call here"),
					logger,
				),
			});
			tls?.followWithoutClients(internal);
			started.defer(() => internal.close(cutAfterMs));
		}
		await references.discover(this.#startEnd.signal);

		const controllers = new AbortController();
		const manager = createControllerManager({
			client: interfaces.trustedShared,
			cloningClient: interfaces.trustedCloned,
			runtime,
			leases,
			logger,
		});
		const systemControllers = [
			createReaper(),
			...createTenancyDeletion({ types: () => registry.all() }),
		];
		const controllersOfModules = modules.flatMap((module) => module.controllers);
		for (const controller of [...systemControllers, ...controllersOfModules]) {
			manager.register(controller);
		}
		observeControllers(metrics.meter, manager);
		const managing = manager
			.run(controllers.signal)
			.catch((failure: unknown) => this.#fail(failure));
		references.control({
			client: interfaces.trustedShared,
			cloningClient: interfaces.trustedCloned,
			leases,
		});
		started.defer(async () => {
			controllers.abort();
			await managing;
		});

		const listener = await openListener({
			address: listen,
			limits,
			...(tls && { tls: tls.material }),
			clock,
			logger,
			handler: createRpcHandler(
				interfaces.external,
				createPlainEndpoints(
					interfaces.external,
					() => this.#phase === "running",
					metricsEndpoint(metrics, authorizer),
				),
				logger,
			),
		});
		tls?.follow(listener);
		metrics.meter
			.createObservableGauge("plinth.connections", { description: "Open connections" })
			.addCallback((result) => result.observe(listener.connections));
		started.defer(async () => {
			const abortCalls = clock.setTimer(stopLimitMs, () =>
				this.#callsEnd.abort(unavailable("the server stops, and the call took too long")),
			);
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

	async #openAccess(
		started: AsyncDisposableStack,
		followers: (() => Promise<void>)[],
	): Promise<Authorizer> {
		const { access, authorizer, runtime = systemRuntime } = this.#options;
		if (authorizer !== undefined) {
			return authorizer;
		}
		if (access === undefined) {
			this.#logger.info(
				{},
				"no tokens are configured: everyone who reaches the port has full rights",
			);
			return everyoneMayDoEverything;
		}
		const context = { clock: runtime.clock, logger: this.#logger };
		const opened = await createAccessAuthorizer(access, context);
		started.defer(() => opened.close());
		followers.push(() => opened.reload());
		return opened;
	}

	#checkReach(listen: ListenAddress, authorizer: Authorizer): void {
		const open = authorizer === everyoneMayDoEverything && !this.#options.allowAnonymous;
		if (open && !isLoopback(listen)) {
			throw new ListenError(
				`${formatListenAddress(listen)} is beyond this machine, where everyone who reaches it would have full rights: give access or an authorizer, listen on 127.0.0.1, or set allowAnonymous`,
			);
		}
	}

	async #readTls(
		started: AsyncDisposableStack,
		followers: (() => Promise<void>)[],
	): Promise<FollowedTls | undefined> {
		const { tls: files, runtime = systemRuntime } = this.#options;
		if (files === undefined) {
			return undefined;
		}
		const { certFile, keyFile, clientCaFile } = files;
		const tlsPaths: Readonly<Record<string, string>> = {
			cert: certFile,
			key: keyFile,
			...(clientCaFile !== undefined && { ca: clientCaFile }),
		};
		let material: TlsMaterial | undefined;
		const listeners: ((material: TlsMaterial) => void)[] = [];
		const followed = await followFiles({
			files: tlsPaths,
			clock: runtime.clock,
			logger: this.#logger,
			take: ({ cert = "", key = "", ca }) => {
				const read = { cert, key, ...(ca !== undefined && { ca }) };
				checkTlsMaterial(files, read);
				material = read;
				for (const follow of listeners) {
					follow(read);
				}
			},
		});
		started.defer(() => followed.close());
		followers.push(() => followed.check());
		const current = () => {
			if (material === undefined) {
				throw new Error("the first contents are taken before this is asked for");
			}
			return material;
		};
		const follow = (setTls: (material: TlsMaterial) => void) => {
			listeners.push(setTls);
			setTls(current());
		};
		return {
			get material() {
				return current();
			},
			get withoutClients() {
				return withoutClients(current());
			},
			follow: (opened) => follow((next) => opened.setTls(next)),
			followWithoutClients: (opened) => follow((next) => opened.setTls(withoutClients(next))),
		};
	}

	async #stop(failure: unknown): Promise<void> {
		if (this.#phase === "new") {
			this.#phase = "stopped";
			this.#ended.resolve();
			return;
		}
		let running: Running;
		try {
			running = await (this.#starting ?? Promise.reject(new Error("not started")));
		} catch {
			return;
		}
		this.#phase = "stopping";
		this.#logger.info({}, "server stopping");
		this.#streamsEnd.abort(unavailable("the server stops: watch again"));
		try {
			await running.parts.disposeAsync();
		} catch (error) {
			this.#ended.reject(error);
			throw error;
		} finally {
			this.#phase = "stopped";
		}
		if (failure === undefined) {
			this.#ended.resolve();
		} else {
			this.#ended.reject(failure);
		}
		this.#logger.info({}, "server stopped");
	}
}

/** What TLS files hold now, and who is told when that changes. */
interface FollowedTls {
	readonly material: TlsMaterial;
	/** The same for clients that show no certificate: they have a credential. */
	readonly withoutClients: TlsMaterial;
	follow(listener: Listener): void;
	followWithoutClients(listener: Listener): void;
}

function withoutClients({ cert, key }: TlsMaterial): TlsMaterial {
	return { cert, key };
}

/** The report on all controllers. */
function withControllers(own: ManagerState, more: ManagerState | undefined): ManagerState {
	return more === undefined
		? own
		: { ...own, controllers: [...own.controllers, ...more.controllers] };
}

/** What policies call the metrics: `internal.v1.Metrics`. */
const metricsType: TypeLike = { group: "internal", groupVersion: "v1", kind: "Metrics" };

function metricsEndpoint(metrics: Metrics, authorizer: Authorizer): MetricsEndpoint {
	return {
		contentType: prometheusType,
		authorize: async (requestHeader) => {
			const access = await accessOf(authorizer, { requestHeader });
			const decision = access.check(operatorRead, { type: metricsType });
			if (decision.kind === "denied") {
				throw new ConnectError(decision.message, Code.PermissionDenied);
			}
		},
		text: () => metrics.prometheus(),
	};
}

/** Says what is stored and can't be asked for: it is kept, and there again once its type is. */
async function warnOfUnregistered(
	backend: StorageBackend,
	registry: TypeRegistry,
	logger: Logger,
): Promise<void> {
	const known = new Set(registry.all().map((type) => type.key));
	for (const [type, count] of await backend.countByType()) {
		if (!known.has(type)) {
			logger.warn({ type, count }, "stored resources of a type that no module registers are kept");
		}
	}
}

/** What calls that were told to end get to say so, before their connections are cut. */
const cutAfterMs = 1_000;

function unavailable(message: string): ConnectError {
	return new ConnectError(message, Code.Unavailable);
}
