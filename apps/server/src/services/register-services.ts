import { create } from "@bufbuild/protobuf";
import {
	type Client,
	Code,
	ConnectError,
	type ConnectRouter,
	type HandlerContext,
	type ServiceImpl,
} from "@connectrpc/connect";
import {
	type AgentReporting,
	type ControllerReports,
	createControllerService,
	type ReportingCluster,
	reportMessageBytes,
} from "@plinth/controller";
import type { References } from "@plinth/db-constraint";
import { createEventService, type EventLog } from "@plinth/events";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { createLeaseService } from "@plinth/leases";
import type { Peerings } from "@plinth/peering";
import {
	BackupService,
	ControllerService,
	createResourceServiceCloningClient,
	EventService,
	HistoryService,
	type ID,
	LeaseService,
	ReadRequestSchema,
	type Resource,
	ResourceSchema,
	ResourceService,
	TypeService,
	WriteRequestSchema,
} from "@plinth/proto";
import { AgentCacheService } from "@plinth/proto/gen/plinth/agent/v1/agent_cache_service_pb.js";
import { ClusterService } from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_pb.js";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { DeploymentService } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { type Authorizer, operatorRead, type TypeLike, type TypeRegistry } from "@plinth/resource";
import {
	authenticateCall,
	callerOf,
	correctConnectError,
	createHistoryService,
	createResourceService,
	createTypeService,
	deploymentAuthorizer,
	enforce,
	type WatchAdmission,
} from "@plinth/resource-service";
import { type CallObserver, createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime, SuspendableLeases, TimedLeases } from "@plinth/runtime";
import type { HistorySource, ServerRecord, StorageBackend } from "@plinth/storage";
import { createAgentCacheService } from "../agents-listener/agent-cache-service.ts";
import { createBackupService } from "../backup/backup-service.ts";
import type { StorageCopies } from "../backup/storage-copies.ts";
import { createClusterService } from "../cluster/cluster-service.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { exchangeOf } from "../listener/exchange.ts";
import { requireFor, requireRead } from "../listener/interceptors/require-read.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import { logFaults } from "../listener/log-faults.ts";
import type { Module } from "../module/define-module.ts";
import { createServerService } from "../overview/overview-service.ts";
import type { SharedOverviews } from "../overview/shared-overviews.ts";
import { eventReaderOf } from "./event-reader.ts";
import { createHealthService } from "./health-service.ts";
import { leaseAccessOf } from "./lease-access.ts";
import { createReflectionService } from "./reflection-service.ts";
import { createReflectionV1Alpha } from "./reflection-v1alpha.ts";

/**
 * The ways to call a server:
 *
 * | interface | reached by | authorization | messages |
 * | --- | --- | --- | --- |
 * | `external` | the public listener | from the caller's token | serialized |
 * | `trustedShared` | caches, priming and watches of controllers | none: full rights | by reference, immutable |
 * | `trustedCloned` | reconcilers, mappers, modules, programs that embed the server | none: full rights | cloned |
 * | `createInternalRouter` | other deployments, on the internal listener (`deployment/internal-router.ts`) | their credential; SchemaMixinService and meta types only | serialized |
 */
export interface Interfaces {
	readonly external: RpcRouter;
	readonly trustedShared: Client<typeof ResourceService>;
	readonly trustedCloned: Client<typeof ResourceService>;
}

/** Options of `registerServices`. */
export interface InterfacesOptions {
	readonly backend: StorageBackend;
	/** The recent versions of the resources. */
	readonly histories: HistorySource;
	readonly copies: StorageCopies;
	readonly references: Pick<References, "deploymentService" | "referenceService">;
	readonly events: EventLog;
	readonly peerings: Pick<Peerings, "exchangeService" | "peeringService">;
	readonly registry: TypeRegistry;
	/** The region of the server's deployment, if it is part of one. */
	readonly region?: string | undefined;
	/** Authorizes calls of the external interface. */
	readonly authorizer: Authorizer;
	/** The names by which clients may call the server; `undefined` if any will do. */
	readonly allowedHosts: ReadonlySet<string> | undefined;
	readonly modules: readonly Module[];
	/** Reports on the controllers, which use these interfaces. */
	readonly controllers: ControllerReports;
	/** The servers that share the storage. */
	readonly cluster: ReportingCluster & { readonly own: ServerRecord };
	/** The leases of the server. While they are suspended, it grants none to others. */
	readonly leases: Pick<SuspendableLeases, "suspended">;
	/** The leases of processes that are not servers. */
	readonly timedLeases: TimedLeases;
	/** The overviews of the cluster. */
	readonly overviews: Pick<SharedOverviews, "take">;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly limits: Pick<ListenerLimits, "messageBytes">;
	/** Whether external calls are accepted; if not, they fail with Unavailable. */
	readonly acceptsCalls: () => boolean;
	/** Whether the server is ready, for the health service. */
	readonly isReady: () => boolean;
	/** Admits external calls: it checks their token and the limits. */
	readonly enter: (call: HandlerContext) => void | Promise<void>;
	/** Admits the watches of external sets. */
	readonly watchAdmission?: WatchAdmission;
	/** Observe external calls, the outermost first. */
	readonly observers: readonly CallObserver[];
	/** Ends the streams of the external interface with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Aborts external calls that did not finish in time, with its reason. */
	readonly callsEnd: AbortSignal;
}

/** The type that policies name to grant access to reports on controllers: `internal.v1.Controller`. */
const controllerReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Controller" };

/** The right to report on controllers that run elsewhere, by their names. */
const operatorReport = "operator:report";

/** The type that policies name to grant access to overviews of the servers: `internal.v1.Server`. */
const serverReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Server" };

/** The type that policies name to grant access to reports on deployments: `internal.v1.Deployment`. */
const deploymentReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Deployment" };

/**
 * The right, in addition to the right to read them, to settle references without a target: what is settled is cleared and
 * deleted on behalf of the deployment, whatever the rights to write it.
 */
const operatorSettle = "operator:settle";

/** The limit on a message to a service that decodes messages of callers without a token. */
export const tokenlessMessageBytes = 4 * 1024;

/** The limit on a message of a peer: it names up to a hundred types. */
const peerMessageBytes = 64 * 1024;

/** The services that need no token, with the limit on their messages, by full name. Peers have credentials of their own. */
export const tokenlessServices: ReadonlyMap<string, number> = new Map([
	[Health.typeName, tokenlessMessageBytes],
	[ClusterService.typeName, tokenlessMessageBytes],
	[PeerExchangeService.typeName, peerMessageBytes],
]);

/** Creates all interfaces of a server, and registers all services on them. */
export function registerServices(options: InterfacesOptions): Interfaces {
	const { backend, registry, region, runtime, logger, authorizer, events } = options;
	const common = { backend, registry, region, runtime, logger, events };
	const trusted = createResourceService({
		...common,
		authorizer: deploymentAuthorizer,
		isInternal: true,
	});
	const trustedShared = createInProcessClient(
		ResourceService,
		createInProcessTransport((router) => router.service(ResourceService, trusted), runtime),
	);
	const trustedCloned = createResourceServiceCloningClient(trustedShared);

	const external = createExternalRouter(options);
	const resources = createResourceService({
		...common,
		authorizer,
		...(options.watchAdmission && { watchAdmission: options.watchAdmission }),
	});
	external.service(ResourceService, resources);
	external.service(
		HistoryService,
		createHistoryService({ ...common, histories: options.histories, authorizer }),
	);
	external.service(TypeService, createTypeService({ registry, authorizer }));
	const callerOfCall = async (call: HandlerContext) =>
		callerOf(registry, await authenticateCall(authorizer, call), call);
	external.service(
		ReferenceService,
		options.references.referenceService({
			read: async (id, call) => readBy(resources, id, call),
			callerOf: callerOfCall,
		}),
	);
	external.service(
		DeploymentService,
		options.references.deploymentService({ callerOf: callerOfCall }),
		{
			interceptors: [
				requireRead(authorizer, deploymentReports),
				requireFor(DeploymentService.method.settle, operatorSettle, authorizer, deploymentReports),
			],
		},
	);
	registerOperations(external, resources, options);
	registerPeerings(external, resources, options);
	for (const module of options.modules) {
		module.services(external, { privilegedClient: trustedCloned, logger });
	}
	return { external, trustedShared, trustedCloned };
}

/** Reads a resource with the rights of a call. */
async function readBy(
	resources: ServiceImpl<typeof ResourceService>,
	id: ID | undefined,
	call: HandlerContext,
): Promise<Resource> {
	const { resource } = await resources.read(create(ReadRequestSchema, id && { id }), call);
	return create(ResourceSchema, resource);
}

/** The router of the public listener, without services. */
function createExternalRouter(options: InterfacesOptions): RpcRouter {
	const { registry, runtime, logger, limits, acceptsCalls, enter, observers } = options;
	return createRpcRouter({
		clock: runtime.clock,
		readMaxBytes: limits.messageBytes,
		// A misspelled field must not be ignored.
		jsonOptions: { registry: registry.messages(), ignoreUnknownFields: false },
		shutdownSignal: options.callsEnd,
		streamsEnd: options.streamsEnd,
		requestGate: (call) => {
			if (!acceptsCalls() && call.service.typeName !== Health.typeName) {
				throw new ConnectError("the server is starting or stopping: try again", Code.Unavailable);
			}
			return enter(call);
		},
		observers,
		onFault: logFaults(logger),
		correctError: correctConnectError,
	});
}

/** Registers the services of peerings: for users, and for clusters of other owners. */
function registerPeerings(
	external: ConnectRouter,
	resources: ServiceImpl<typeof ResourceService>,
	{ peerings, cluster }: InterfacesOptions,
): void {
	external.service(
		PeeringService,
		peerings.peeringService({
			address: () => cluster.own.address,
			read: (id, call) => readBy(resources, id, call),
			write: async (resource, call) => {
				const request = create(WriteRequestSchema, { resource });
				return create(ResourceSchema, (await resources.write(request, call)).resource);
			},
		}),
	);
	external.service(PeerExchangeService, peerings.exchangeService, {
		readMaxBytes: peerMessageBytes,
	});
}

/** Registers the reports on controllers. */
function registerControllers(
	external: ConnectRouter,
	resources: ServiceImpl<typeof ResourceService>,
	{ authorizer, controllers, cluster, runtime }: InterfacesOptions,
): void {
	const read = (id: ID | undefined, call: HandlerContext) => readBy(resources, id, call);
	const { listReconciles, reportControllers } = ControllerService.method;
	const agents: AgentReporting = {
		clock: runtime.clock,
		authorize: async (call, names) => {
			const access = await authenticateCall(authorizer, call);
			for (const name of names) {
				enforce(access.check(operatorReport, { type: controllerReports, name }));
			}
		},
	};
	external.service(
		ControllerService,
		createControllerService(controllers, { read, cluster, agents }),
		{
			interceptors: [
				requireRead(authorizer, controllerReports, [listReconciles, reportControllers]),
			],
			readMaxBytes: reportMessageBytes,
		},
	);
}

/** Registers the services for operators and tools: controllers, backups, health and reflection. */
function registerOperations(
	external: ConnectRouter,
	resources: ServiceImpl<typeof ResourceService>,
	options: InterfacesOptions,
): void {
	const { registry, authorizer, cluster, backend, events } = options;
	const { copies, runtime, logger, isReady } = options;
	registerControllers(external, resources, options);
	external.service(
		ServerService,
		createServerService({
			overviews: options.overviews,
			admit: async (call) => {
				const access = await authenticateCall(authorizer, call);
				enforce(access.check(operatorRead, { type: serverReports, name: "" }));
				return leaseAccessOf(access);
			},
			whenTaken: (call) => exchangeOf(call.values).whenTaken(),
			clock: runtime.clock,
		}),
	);
	external.service(
		EventService,
		createEventService({
			...{ log: events, registry },
			runtime,
			readerOf: (call) => eventReaderOf({ authorizer, registry, backend, logger }, call),
		}),
	);
	external.service(
		BackupService,
		createBackupService({ copies, authorizer, clock: runtime.clock, logger }),
	);
	external.service(
		LeaseService,
		createLeaseService({
			leases: options.timedLeases,
			suspended: () => options.leases.suspended?.message,
			stopping: options.streamsEnd,
			accessOf: async (call) => leaseAccessOf(await authenticateCall(authorizer, call)),
			clock: runtime.clock,
		}),
	);
	external.service(
		AgentCacheService,
		createAgentCacheService({
			...{ backend, registry, authorizer, clock: runtime.clock },
			region: options.region,
			allowedHosts: options.allowedHosts,
		}),
	);
	external.service(
		ClusterService,
		createClusterService(() => cluster.own),
		{
			readMaxBytes: tokenlessMessageBytes,
		},
	);
	external.service(
		Health,
		createHealthService({
			services: () => external.handlers.map(({ service }) => service.typeName),
			isReady,
		}),
		{ readMaxBytes: tokenlessMessageBytes },
	);
	const reflection = createReflectionService(external, registry.messages());
	external.service(ServerReflection, reflection);
	external.service(ServerReflectionV1Alpha, createReflectionV1Alpha(reflection));
}
