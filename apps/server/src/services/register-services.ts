import {
	type Client,
	Code,
	ConnectError,
	type ConnectRouter,
	createConnectRouter,
	type HandlerContext,
	type Interceptor,
} from "@connectrpc/connect";
import { type ControllerManager, createControllerService } from "@plinth/controller";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import {
	BackupService,
	ControllerService,
	createResourceServiceCloningClient,
	ResourceService,
	TypeService,
} from "@plinth/proto";
import type { Authorizer, TypeLike, TypeRegistry } from "@plinth/resource";
import {
	correctConnectErrors,
	createResourceService,
	createTypeService,
	deploymentAuthorizer,
} from "@plinth/resource-service";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { createBackupService } from "../backup/backup-service.ts";
import type { StorageCopies } from "../backup/storage-copies.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { endCalls } from "../listener/interceptors/end-calls.ts";
import { endStreams } from "../listener/interceptors/end-streams.ts";
import { reportFaults } from "../listener/interceptors/report-faults.ts";
import { requireRead } from "../listener/interceptors/require-read.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { Module } from "../module/define-module.ts";
import { createHealthService } from "./health-service.ts";
import { createReflectionService } from "./reflection-service.ts";
import { createReflectionV1Alpha } from "./reflection-v1alpha.ts";

/**
 * Who can call what, and how:
 *
 * | interface | reached by | authorization | messages |
 * | --- | --- | --- | --- |
 * | `external` | the public listener | from the caller's token | serialized |
 * | `trustedShared` | caches, priming and watches of controllers | none: full rights | by reference, immutable |
 * | `trustedCloned` | reconcilers, mappers, modules, whoever embeds the server | none: full rights | cloned |
 * | `createInternalRouter` | other deployments, on the internal listener (`deployment/internal-router.ts`) | their credential; SchemaMixinService and meta types only | serialized |
 */
export interface Interfaces {
	readonly external: ConnectRouter;
	readonly trustedShared: Client<typeof ResourceService>;
	readonly trustedCloned: Client<typeof ResourceService>;
}

/** What the interfaces are made of. */
export interface InterfacesOptions {
	readonly backend: StorageBackend;
	/** Backups of the storage. */
	readonly copies: StorageCopies;
	readonly registry: TypeRegistry;
	/** Decides for the interfaces that look at tokens. */
	readonly authorizer: Authorizer;
	readonly modules: readonly Module[];
	/** Reports on the controllers that work through these interfaces. */
	readonly controllers: Pick<ControllerManager, "state" | "graph">;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly limits: Pick<ListenerLimits, "messageBytes">;
	/** Whether external calls are taken; until then, and after, they are Unavailable. */
	readonly takesCalls: () => boolean;
	/** Whether the server can do its work, for the health service. */
	readonly isReady: () => boolean;
	/** Lets external calls in: with a token that is good, within the limits. */
	readonly enter: (call: HandlerContext) => void | Promise<void>;
	/** What else external calls pass through, from the outside in. */
	readonly interceptors: readonly Interceptor[];
	/** Ends the streams of the external interface with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Aborts external calls that did not finish in time, with its reason. */
	readonly callsEnd: AbortSignal;
}

/** What policies call the reports on controllers: `internal.v1.Controller`. */
const controllerReports: TypeLike = { group: "internal", groupVersion: "v1", kind: "Controller" };

/** The size of a message to the health service, which reads those of callers without a token. */
export const healthMessageBytes = 4 * 1024;

/** Defines all interfaces of a server, and registers all services on them. */
export function createInterfaces(options: InterfacesOptions): Interfaces {
	const { backend, registry, runtime, logger } = options;
	const trusted = createResourceService({
		backend,
		registry,
		runtime,
		logger,
		authorizer: deploymentAuthorizer,
		isInternal: true,
	});
	const secured = createResourceService({
		backend,
		registry,
		runtime,
		logger,
		authorizer: options.authorizer,
	});

	const trustedTransport = createInProcessTransport(
		(router) => router.service(ResourceService, trusted),
		runtime,
	);
	const trustedShared = createInProcessClient(ResourceService, trustedTransport);
	const trustedCloned = createResourceServiceCloningClient(trustedShared);

	const external = createConnectRouter({
		readMaxBytes: options.limits.messageBytes,
		// A misspelt field must not be lost silently.
		jsonOptions: { registry: registry.messages(), ignoreUnknownFields: false },
		shutdownSignal: options.callsEnd,
		requestGate: (call) => {
			correctConnectErrors(call);
			if (!options.takesCalls() && call.service.typeName !== Health.typeName) {
				throw new ConnectError("the server is starting or stopping: try again", Code.Unavailable);
			}
			return options.enter(call);
		},
		interceptors: [
			...options.interceptors,
			...[endStreams(options.streamsEnd), endCalls(options.callsEnd), reportFaults(logger)],
		],
	});
	external.service(ResourceService, secured);
	external.service(TypeService, createTypeService({ registry, authorizer: options.authorizer }));
	external.service(ControllerService, createControllerService(options.controllers), {
		interceptors: [requireRead(options.authorizer, controllerReports)],
	});
	const { copies, authorizer } = options;
	external.service(
		BackupService,
		createBackupService({ copies, authorizer, clock: runtime.clock, logger }),
	);
	external.service(
		Health,
		createHealthService({
			services: () => external.handlers.map(({ service }) => service.typeName),
			isReady: options.isReady,
		}),
		{ readMaxBytes: healthMessageBytes },
	);
	const reflection = createReflectionService(external, registry.messages());
	external.service(ServerReflection, reflection);
	external.service(ServerReflectionV1Alpha, createReflectionV1Alpha(reflection));
	for (const module of options.modules) {
		module.services(external, { trusted: trustedCloned, logger });
	}

	return { external, trustedShared, trustedCloned };
}
