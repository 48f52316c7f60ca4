import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { metaTypes } from "@plinth/db-constraint";
import { ResourceService } from "@plinth/proto";
import { RegionalCopyService } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { TypeRegistry } from "@plinth/resource";
import {
	correctConnectError,
	createResourceService,
	deploymentAuthorizer,
} from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { logFaults } from "../listener/log-faults.ts";

/** Options of `createInternalRouter`. */
export interface InternalRouterOptions {
	readonly mixin: ServiceImpl<typeof SchemaMixinService>;
	/** For other regions of the service; absent at meta deployments. */
	readonly copies: ServiceImpl<typeof RegionalCopyService> | undefined;
	/** Whether this is a meta deployment, which also serves the meta types. */
	readonly isMeta: boolean;
	readonly store: StorageBackend;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly messageBytes: number;
	/** Throws if a call does not carry the credential. */
	readonly check: (call: HandlerContext) => void;
	/** Ends streams with its reason. */
	readonly streamsEnd: AbortSignal;
	/** Ends all calls with its reason. */
	readonly callsEnd: AbortSignal;
}

/**
 * The interface for other deployments: the mixin service and, at meta deployments, the resource service for the
 * meta types, at others the copies for other regions of the service. The credential grants all rights on it.
 */
export function createInternalRouter(options: InternalRouterOptions): RpcRouter {
	const { mixin, copies, isMeta, store, runtime, logger, check } = options;
	const router = createRpcRouter({
		clock: runtime.clock,
		readMaxBytes: options.messageBytes,
		shutdownSignal: options.callsEnd,
		streamsEnd: options.streamsEnd,
		requestGate: check,
		onFault: logFaults(logger),
		correctError: correctConnectError,
	});
	router.service(SchemaMixinService, mixin);
	if (copies !== undefined) {
		router.service(RegionalCopyService, copies);
	}
	if (isMeta) {
		router.service(
			ResourceService,
			createResourceService({
				backend: store,
				registry: new TypeRegistry(metaTypes),
				runtime,
				logger,
				authorizer: deploymentAuthorizer,
			}),
		);
	}
	return router;
}
