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
	type ControllerReports,
	createControllerService,
	type ReportingCluster,
} from "@plinth/controller";
import type { References } from "@plinth/db-constraint";
import { createEventService, type EventLog } from "@plinth/events";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	BackupService,
	ControllerService,
	createResourceServiceCloningClient,
	EventService,
	HistoryService,
	type ID,
	ReadRequestSchema,
	type Resource,
	ResourceSchema,
	ResourceService,
	TypeService,
} from "@plinth/proto";
import { ClusterService } from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_pb.js";
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
} from "@plinth/resource-service";
import { type CallObserver, createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime } from "@plinth/runtime";
import type { HistorySource, ServerRecord, StorageBackend } from "@plinth/storage";
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
	readonly registry: TypeRegistry;
	/** Authorizes calls of the external interface. */
	readonly authorizer: Authorizer;
	readonly modules: readonly Module[];
	/** Reports on the controllers, which use these interfaces. */
	readonly controllers: ControllerReports;
	/** The servers that share the storage. */
	readonly cluster: ReportingCluster & { readonly own: ServerRecord };
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
	/** Observe external calls, the outermost first. */
	readonly observers: readonly CallObserver[];
	/** Ends the streams of the external interface with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Aborts external calls that did not finish in time, with its reason. */
	readonly callsEnd: AbortSignal;
}

/** The type that policies name to grant access to reports on controllers: `internal.v1.Controller`. */
const controllerReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Controller" };

/** The type that policies name to grant access to overviews of the servers: `internal.v1.Server`. */
const serverReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Server" };

/** The type that policies name to grant access to reports on deployments: `internal.v1.Deployment`. */
const deploymentReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Deployment" };

/**
 * The right, in addition to the right to read them, to settle references without a target: what is settled is cleared and
 * deleted on behalf of the deployment, whatever the rights to write it.
 */
const operatorSettle = "operator:settle";

/** The full names of services that need no token. */
export const tokenlessServices: ReadonlySet<string> = new Set([
	Health.typeName,
	ClusterService.typeName,
]);

/** The limit on a message to a service that decodes messages of callers without a token. */
export const tokenlessMessageBytes = 4 * 1024;

/** Creates all interfaces of a server, and registers all services on them. */
export function registerServices(options: InterfacesOptions): Interfaces {
	const { backend, registry, runtime, logger, authorizer, events } = options;
	const common = { backend, registry, runtime, logger, events };
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
	const resources = createResourceService({ ...common, authorizer });
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

/** Registers the services for operators and tools: controllers, backups, health and reflection. */
function registerOperations(
	external: ConnectRouter,
	resources: ServiceImpl<typeof ResourceService>,
	options: InterfacesOptions,
): void {
	const { registry, authorizer, controllers, cluster, backend, events } = options;
	const { copies, runtime, logger, isReady } = options;
	const read = (id: ID | undefined, call: HandlerContext) => readBy(resources, id, call);
	external.service(ControllerService, createControllerService(controllers, { read, cluster }), {
		interceptors: [
			requireRead(authorizer, controllerReports, [ControllerService.method.listReconciles]),
		],
	});
	external.service(
		ServerService,
		createServerService({
			overviews: options.overviews,
			admit: async (call) => {
				const access = await authenticateCall(authorizer, call);
				enforce(access.check(operatorRead, { type: serverReports, name: "" }));
				return access;
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
